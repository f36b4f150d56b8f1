// SPDX-License-Identifier: Apache-2.0
// What a simulated store can prove: every manifest and every block of it is read and verified, with
// nothing of the session's code, and counted by the nodes that have it.
#pragma once

#include "base/nouns.hpp"
#include "os/memory_files.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::simulator {

struct WalkedVersion {
  std::set<Rank> manifests;  ///< of these ranks one can be read, on any node
  bool provable = false;     ///< of all ranks, and with them every block
  /// So many have the manifest or block that the fewest have; the global tier is none. A whole
  /// stripe is worth one node more than it may lose.
  std::size_t least_nodes = 0;
  std::string rarest;         ///< which one that is
  Level level;                ///< as its manifests say
  std::set<Rank> on_nodes;    ///< of these ranks a node has the manifest
  std::set<Rank> on_global;   ///< of these ranks the global tier has it
  bool global_whole = true;   ///< and with those every block
  bool global_blocks = true;  ///< the same of those manifests that are there, if they are not all
  bool whole = true;          ///< some place has every manifest and block that was looked for
};

struct StoreWalk {
  std::map<VersionKey, WalkedVersion> versions;
  std::vector<std::string> wrong_stripes;  ///< of which parity is not that of the members
  /// Versions of which there are segments, copies or shards that no manifest counts on, and one of
  /// them.
  std::map<VersionKey, std::string> dead;
  VersionKey unread;  ///< the newest of which there is a bundle that cannot be read

  std::optional<VersionKey> newest_provable() const;
  bool provable(Version version) const;
};

StoreWalk walk_store(os::MemoryFiles& files, Rank ranks);

}  // namespace belay::simulator
