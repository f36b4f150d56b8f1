// SPDX-License-Identifier: Apache-2.0
// The stripes of a store, as the shards that are left tell.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "inspect/store_view.hpp"
#include "redundancy/stripe_layout.hpp"
#include "vote/needs.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace belay::inspect {

/// A stripe, and where its shards lie.
struct StripeView {
  Stripe stripe;
  Origin origin;  ///< that its shards name
  redundancy::StripeLayout layout;
  /// By seat and index: the node that has the shard; unset: it is missing, or its description
  /// cannot be read.
  std::vector<std::vector<std::optional<std::size_t>>> shards;

  /// Unset: all shards of this seat are lost, and nobody knows where they were.
  std::optional<std::size_t> node_of(std::uint32_t seat) const;
  SegmentId member(std::uint32_t seat) const { return {stripe.key, stripe.members[seat].rank}; }
  SegmentId shard(std::uint32_t index) const { return shard_id(stripe.key, stripe.number, index); }
};

/// References into it stay good for as long as it lives.
class Stripes {
 public:
  /// Reads the descriptions of all shards in these directories. What cannot be read is left out.
  /// Where shards disagree about their stripe, most are right.
  static Stripes read(os::Files& files, const std::vector<NodeView>& nodes);

  const std::vector<StripeView>& all() const { return all_; }
  struct Seat {
    const StripeView* stripe = nullptr;
    std::uint32_t seat = 0;
  };
  /// Unset: it is a member of none.
  std::optional<Seat> of(const SegmentId& member) const;
  /// The stripe of a shard (base/stripe.hpp); nullptr: no description of it is left.
  const StripeView* of_shard(const SegmentId& shard) const;
  /// Adds what else is needed, since who counts on a member counts on the whole stripe.
  void complete(vote::Needs& needs) const;

 private:
  std::vector<StripeView> all_;  ///< by version and number
  std::map<SegmentId, std::pair<std::size_t, std::uint32_t>> members_;
  std::map<std::pair<VersionKey, std::uint32_t>, std::size_t> numbers_;
};

}  // namespace belay::inspect
