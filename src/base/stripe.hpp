// SPDX-License-Identifier: Apache-2.0
// A stripe: segments of one version on distinct nodes, with the shards that stand in for lost ones.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <vector>

namespace belay {

/// The segment that one node gives to a stripe. Blocks with enough natural copies lie in a gap of
/// its file that takes no part: the member is what is before and behind it.
struct StripeMember {
  Rank rank = kAnyRank;  ///< kAnyRank: the node gives none
  std::uint64_t file_bytes = 0;
  std::uint64_t gap_begin = 0;
  std::uint64_t gap_bytes = 0;

  bool empty() const { return rank == kAnyRank; }
  std::uint64_t bytes() const { return file_bytes - gap_bytes; }
  bool operator==(const StripeMember&) const = default;
};

/// Nodes have seats in it, 0 to members.size() - 1: each gives a member, or none, and keeps a shard
/// of each of `level.shards` codewords (redundancy/stripe_layout.hpp).
struct Stripe {
  VersionKey key;
  std::uint32_t number = 0;  ///< in its version
  Level level;
  std::vector<StripeMember> members;  ///< by seat

  std::uint32_t seats() const { return static_cast<std::uint32_t>(members.size()); }
  bool operator==(const Stripe&) const = default;
};

/// Names of shards have the number of the stripe and of the shard in one.
inline constexpr std::uint32_t kMostShards = 256;
inline SegmentId shard_id(VersionKey key, std::uint32_t stripe, std::uint32_t shard) {
  return {key, stripe * kMostShards + shard};
}
inline std::uint32_t stripe_of_shard(const SegmentId& shard) { return shard.rank / kMostShards; }
inline std::uint32_t index_of_shard(const SegmentId& shard) { return shard.rank % kMostShards; }

}  // namespace belay
