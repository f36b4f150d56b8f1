// SPDX-License-Identifier: Apache-2.0
// Manifests that a rank does not have on its own node, from those who have them.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "comm/group.hpp"
#include "store/tier.hpp"
#include "vote/survey.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace belay::vote {

/// Who can read whose manifests. The same on all ranks.
class ManifestSources {
 public:
  ManifestSources() = default;
  /// From the surveys of all ranks, by rank.
  explicit ManifestSources(const std::vector<Survey>& surveys);

  /// `directory` is where the reader has it: on a node, or on the global tier.
  void add(VersionKey key, Rank owner, Rank reader, std::string directory, bool global) {
    readers_[{key, owner}].push_back({reader, std::move(directory), global});
  }
  /// Those on nodes, or those on the global tier, are gone.
  void forget(VersionKey key, bool global);
  /// Those who can read the manifest of `owner`, itself first.
  std::vector<Rank> readers(VersionKey key, Rank owner) const;
  std::size_t most_readers(VersionKey key) const;
  /// The nodes' directories that the manifest of `owner` is in.
  std::vector<std::string> directories(VersionKey key, Rank owner) const;
  std::vector<VersionKey> versions() const;
  /// Does every rank have its own?
  bool all_at_home(VersionKey key, Rank ranks) const;

 private:
  struct Reader {
    Rank rank = 0;
    std::string directory;
    bool global = false;
  };
  std::map<SegmentId, std::vector<Reader>> readers_;  ///< by version and owner
};

/// Collective. This rank's manifest of a version, from its own node or from another, whichever can
/// be read first.
Result<Manifest> fetch_manifest(ranks::Group& group, store::Tier& tier,
                                const ManifestSources& sources, VersionKey key,
                                const StoreId& store, Log& log);

}  // namespace belay::vote
