// SPDX-License-Identifier: Apache-2.0
#include "session/stripe_plan.hpp"

#include <gtest/gtest.h>

#include <set>

namespace belay::session {
namespace {

constexpr VersionKey kKey{3, 7};

dedup::NodeLayout layout_of(std::vector<dedup::Node> nodes, const Level& level) {
  auto layout = dedup::NodeLayout::make(std::move(nodes), level.losses() + 1, level);
  EXPECT_TRUE(layout);
  return *std::move(layout);
}

Share share_of(std::uint64_t pages, std::uint64_t natural = 0) {
  return {4096 * pages, 4096 * pages - 1000, natural, {}};
}

std::vector<PlannedStripe> planned(const std::vector<dedup::Node>& nodes, const Level& level,
                                   const std::vector<Share>& shares) {
  auto stripes = plan_stripes(layout_of(nodes, level), level, kKey, shares);
  EXPECT_TRUE(stripes);
  return stripes ? *std::move(stripes) : std::vector<PlannedStripe>{};
}

TEST(StripePlan, NodesWithSeveralRanksGiveSeveralStripes) {
  // Node 0 has ranks 0 and 3, node 1 rank 1, node 2 rank 2.
  const auto stripes =
      planned({0, 1, 2, 0}, Level::erasure(2, 1), {share_of(1), share_of(2), {}, share_of(4, 500)});
  ASSERT_EQ(stripes.size(), 2u);
  const Stripe& first = stripes[0].stripe;
  EXPECT_EQ(first.key, kKey);
  ASSERT_EQ(first.seats(), 3u);
  EXPECT_EQ(first.members[0].rank, 0u);
  EXPECT_EQ(first.members[1].file_bytes, 2 * 4096u);
  EXPECT_TRUE(first.members[2].empty()) << "rank 2 stores nothing";
  const Stripe& second = stripes[1].stripe;
  EXPECT_NE(second.number, first.number);
  EXPECT_EQ(second.members[0].rank, 3u);
  EXPECT_EQ(second.members[0].gap_bytes, 500u);
  EXPECT_EQ(second.members[0].gap_begin, 128u + 4 * 4096 - 1000 - 500);
  EXPECT_TRUE(second.members[1].empty() && second.members[2].empty());
  EXPECT_EQ(stripes[1].keepers, (std::vector<Rank>{3, 1, 2})) << "each on the node of its seat";
}

TEST(StripePlan, NothingToProtectMakesNoStripe) {
  EXPECT_TRUE(planned({0, 1, 2}, Level::erasure(2, 1), std::vector<Share>(3)).empty());
}

TEST(StripePlan, EveryMemberIsInOneStripeAndItsSeatsAreOnDistinctNodes) {
  for (std::uint32_t nodes = 3; nodes < 14; ++nodes)
    for (std::uint32_t on_node = 1; on_node < 4; ++on_node) {
      std::vector<dedup::Node> node_of;
      for (Rank rank = 0; rank < nodes * on_node - (on_node - 1); ++rank)
        node_of.push_back(rank % nodes);
      const std::vector<Share> shares(node_of.size(), share_of(3));
      std::set<Rank> seen;
      std::set<std::uint32_t> numbers;
      for (const PlannedStripe& each : planned(node_of, Level::erasure(2, 1), shares)) {
        EXPECT_TRUE(numbers.insert(each.stripe.number).second);
        EXPECT_GE(each.stripe.seats(), 3u);
        std::set<dedup::Node> seats;
        for (std::uint32_t seat = 0; seat < each.stripe.seats(); ++seat) {
          EXPECT_TRUE(seats.insert(node_of[each.keepers[seat]]).second);
          const StripeMember& member = each.stripe.members[seat];
          if (member.empty()) continue;
          EXPECT_TRUE(seen.insert(member.rank).second);
          EXPECT_EQ(node_of[member.rank], node_of[each.keepers[seat]]);
        }
      }
      EXPECT_EQ(seen.size(), node_of.size());
    }
}

}  // namespace
}  // namespace belay::session
