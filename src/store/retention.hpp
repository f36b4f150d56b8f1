// SPDX-License-Identifier: Apache-2.0
// Which versions stay.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace belay::store {

/// A version of which files are here; the same on all ranks but for `segments`.
struct KnownVersion {
  VersionKey key;
  bool exists = false;  ///< complete on all ranks, as all agreed
  /// That this rank's manifest counts on; unset: there is a manifest, but it could not be read.
  std::optional<std::vector<SegmentId>> segments = std::vector<SegmentId>{};
  std::uint32_t strength = 0;  ///< so many losses of nodes its level survives
  bool dump = false;           ///< taken by dump(): it neither counts nor goes
  bool here = true;            ///< false: all of it is elsewhere; it neither counts nor goes
};

struct RetentionRule {
  std::uint64_t keep = 2;
  Run run = 0;                      ///< of this session
  bool earlier_runs_count = false;  ///< this run has restored
};

/// The keys to retire: those with `keep` newer existing versions of the same or a stronger level.
/// Versions that do not exist never count as newer ones. Until this run has restored, versions of
/// earlier runs neither count nor go.
std::vector<VersionKey> versions_to_retire(const std::vector<KnownVersion>& known,
                                           const RetentionRule& rule);

/// Of the segments that are here, those that no remaining version counts on. Where a manifest could
/// not be read nobody knows what it counts on, so nothing older than it goes.
std::vector<SegmentId> segments_to_remove(const std::vector<SegmentId>& here,
                                          const std::vector<KnownVersion>& remaining,
                                          const RetentionRule& rule);

}  // namespace belay::store
