// SPDX-License-Identifier: Apache-2.0
#include "base/node_sets.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace belay {
namespace {

std::size_t most_lost_of(std::vector<std::uint32_t> sets, std::uint32_t losses) {
  return most_lost(sets, losses);
}

TEST(NodeSets, WithoutParityAllNodesAreInOne) {
  EXPECT_EQ(NodeSets(12, Level::replicas(3)).count(), 1u);
  EXPECT_EQ(NodeSets(12, Level{}).count(), 1u);
  EXPECT_EQ(NodeSets(12, Level::erasure(2, 1)).count(), 4u);
  EXPECT_EQ(NodeSets(2, Level::erasure(2, 1)).count(), 1u);
}

TEST(MostLost, EachSetLosesItsShare) {
  EXPECT_EQ(most_lost_of({}, 2), 0u);
  EXPECT_EQ(most_lost_of({0, 0, 0}, 2), 2u);
  EXPECT_EQ(most_lost_of({0, 0, 0}, 0), 0u);
  EXPECT_EQ(most_lost_of({1, 0, 1}, 1), 2u);
  EXPECT_EQ(most_lost_of({2, 1, 0}, 1), 3u) << "one copy in each of three sets is not enough";
}

TEST(MostLost, NothingIsPromisedOfNodesInNoSet) {
  EXPECT_EQ(most_lost_of({kNoSet, 0, kNoSet}, 1), 3u);
}

}  // namespace
}  // namespace belay
