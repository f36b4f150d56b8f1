// SPDX-License-Identifier: Apache-2.0
// What versions count on.
#pragma once

#include "base/nouns.hpp"
#include "base/stripe.hpp"
#include "store/retention.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

namespace belay::vote {

/// A version that is retired, as one rank sees it.
struct RetiringVersion {
  VersionKey key;
  bool visible = true;  ///< this rank has not hidden, durably, all manifests that it looks after
  /// That this rank's manifest counts on; unset: nobody knows.
  std::optional<std::vector<SegmentId>> segments = {};
};

/// Segments that somebody counts on. All ranks exchange theirs.
struct Needs {
  std::set<SegmentId> segments;
  std::set<SegmentId> shards;  ///< of stripes with a member that somebody counts on
  VersionKey unread;           ///< nothing of this or older may go: nobody knows what is needed
  std::vector<RetiringVersion> retiring;

  void add(const Needs& other) {
    segments.insert(other.segments.begin(), other.segments.end());
    unread = std::max(unread, other.unread);
    retiring.insert(retiring.end(), other.retiring.begin(), other.retiring.end());
  }
  /// Once all ranks have added theirs: what a version counts on is needed while any rank has a
  /// manifest of it to hide. Leaves such versions in `retiring`.
  void add_retiring();
  bool has(const SegmentId& id) const { return id.key <= unread || segments.contains(id); }
  bool has_shard(const SegmentId& id) const { return id.key <= unread || shards.contains(id); }
  /// Who counts on a member counts on the whole stripe.
  void complete(const std::vector<const Stripe*>& stripes);
};

/// What these versions count on, for one rank.
inline Needs needs_of(const std::vector<store::KnownVersion>& versions) {
  Needs needs;
  for (const store::KnownVersion& version : versions) {
    if (version.segments)
      needs.segments.insert(version.segments->begin(), version.segments->end());
    else
      needs.unread = std::max(needs.unread, version.key);
  }
  return needs;
}

}  // namespace belay::vote
