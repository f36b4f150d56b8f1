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

namespace belay::simulator {

struct WalkedVersion {
  std::set<Rank> manifests;     ///< of these ranks one can be read, on any node
  bool provable = false;        ///< of all ranks, and with them every block
  std::size_t least_nodes = 0;  ///< so many have the manifest or block that the fewest have
  std::string rarest;           ///< which one that is
};

struct StoreWalk {
  std::map<VersionKey, WalkedVersion> versions;
  /// Versions of which there are segments or copies that no manifest counts on, and one of them.
  std::map<VersionKey, std::string> dead;

  std::optional<VersionKey> newest_provable() const;
  bool provable(Version version) const;
};

StoreWalk walk_store(os::MemoryFiles& files, Rank ranks);

}  // namespace belay::simulator
