// SPDX-License-Identifier: Apache-2.0
#include "aggregate/sets.hpp"

#include <gtest/gtest.h>

#include <set>

namespace belay::aggregate {
namespace {

TEST(RankSets, EveryRankIsInOneSetOfItsNodeAndNoneIsTooLarge) {
  for (std::uint32_t ranks = 1; ranks < 40; ++ranks)
    for (std::uint32_t nodes = 1; nodes <= ranks; nodes += 3)
      for (const std::uint64_t most : {1, 3, 8, 100}) {
        std::vector<std::uint32_t> node_of;
        for (Rank rank = 0; rank < ranks; ++rank) node_of.push_back(rank % nodes);
        std::set<Rank> seen;
        std::set<std::uint32_t> numbers;
        for (const RankSet& set : sets_on_nodes(node_of, most)) {
          EXPECT_LE(set.members.size(), most);
          EXPECT_TRUE(numbers.insert(set.number).second);
          EXPECT_EQ(set.aggregator(), set.number);
          for (const Rank member : set.members) {
            EXPECT_TRUE(seen.insert(member).second);
            EXPECT_EQ(node_of[member], node_of[set.aggregator()]);
          }
        }
        EXPECT_EQ(seen.size(), ranks);
      }
}

TEST(RankSets, AreAsFewAsPossibleAndNearlyEqual) {
  const std::vector<std::uint32_t> node_of(10, 5);
  const auto sets = sets_on_nodes(node_of, 4);
  ASSERT_EQ(sets.size(), 3u);
  for (const RankSet& set : sets) EXPECT_GE(set.members.size(), 3u);
}

TEST(RankSets, OverNodesThereAreAsFewAsPossible) {
  const auto sets = sets_over_nodes(16, 8);
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[1].number, 8u);
  EXPECT_EQ(sets[1].members.size(), 8u);
  EXPECT_EQ(sets_over_nodes(3, 8).size(), 1u);
}

}  // namespace
}  // namespace belay::aggregate
