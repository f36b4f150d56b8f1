// SPDX-License-Identifier: Apache-2.0
// Which segments of a version form stripes, and who keeps their shards. Every rank computes the
// same from what all know.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "dedup/node_layout.hpp"
#include "redundancy/stripe_layout.hpp"
#include "session/version_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::session {

struct PlannedStripe {
  Stripe stripe;
  redundancy::StripeLayout layout;
  std::vector<Rank> keepers;  ///< by seat: the rank that keeps the shards of that node
};

/// Nodes form sets; in each set the first ranks of all nodes make a stripe, the second ones
/// another. Where nobody stores anything there is none.
Result<std::vector<PlannedStripe>> plan_stripes(const dedup::NodeLayout& nodes, const Level& level,
                                                VersionKey key, std::span<const Share> shares);

}  // namespace belay::session
