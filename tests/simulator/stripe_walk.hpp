// SPDX-License-Identifier: Apache-2.0
// The stripes of a simulated store: which of them are whole, and which blocks of lost members they
// give back. Every byte is verified, parity is computed anew, with nothing of the session's code.
#pragma once

#include "base/stripe.hpp"
#include "fingerprint/hasher.hpp"
#include "os/memory_files.hpp"
#include "redundancy/stripe_layout.hpp"
#include "store/segment_file.hpp"
#include "store/shard_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::simulator {

/// A segment as a node has it.
struct FoundSegment {
  std::size_t node = 0;
  std::vector<std::byte> bytes;
  store::StoredBlocks blocks;  ///< front to back
  std::vector<bool> good;      ///< of each: does its fingerprint fit?
};

class StripeWalk {
 public:
  void add_segment(const SegmentId& id, FoundSegment segment) {
    segments_.insert_or_assign(id, std::move(segment));
  }
  void add_shard(os::MemoryFiles& files, const std::string& path, std::size_t node,
                 const SegmentId& id);

  /// Who counts on one member counts on all of them. Afterwards dead() is known.
  void complete(std::set<SegmentId>& counted_on);
  /// Shards of stripes of which nobody counts on a member.
  const std::map<SegmentId, std::string>& dead() const { return dead_; }

  /// Called for blocks that parity stands for, with the losses that they survive: 0 if the stripe
  /// is not whole any more.
  using Protected =
      std::function<void(const SegmentId&, const store::StoredBlock&, std::uint32_t losses)>;
  /// Judges all stripes; which of them have wrong parity.
  std::vector<std::string> judge(const Protected& found);

 private:
  using StripeId = std::pair<VersionKey, std::uint32_t>;
  struct Shard {
    std::size_t node = 0;
    store::ShardFile file;
  };
  struct Known {
    Stripe stripe;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Shard> shards;  ///< by seat and index
  };

  const FoundSegment* member(const Stripe& stripe, std::uint32_t seat) const;
  bool seats_are_apart(const Known& known) const;
  bool members_are_good(const Stripe& stripe) const;
  bool shards_are_good(Known& known) const;
  bool parity_is_right(Known& known, const redundancy::StripeLayout& layout) const;
  void give_back(Known& known, const redundancy::StripeLayout& layout, std::uint32_t seat,
                 const Protected& found) const;
  Result<void> read(Known& known, const redundancy::StripePart& part, std::uint64_t offset,
                    std::span<std::byte> into) const;

  std::map<SegmentId, FoundSegment> segments_;
  std::map<StripeId, Known> stripes_;
  std::map<SegmentId, std::string> shard_paths_;
  std::map<SegmentId, std::string> dead_;
};

}  // namespace belay::simulator
