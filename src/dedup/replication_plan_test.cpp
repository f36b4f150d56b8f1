// SPDX-License-Identifier: Apache-2.0
#include "dedup/replication_plan.hpp"

#include "dedup/plan_world_test.hpp"

#include <array>

namespace belay::dedup {
namespace {

std::vector<Rank> holders(const ReplicationPlan& plan, std::uint32_t block) {
  return {plan.holders(block).begin(), plan.holders(block).end()};
}

World world_of(NodeLayout layout, std::vector<std::vector<Block>> blocks) {
  return {.layout = std::move(layout), .blocks = std::move(blocks), .max_block_bytes = 100};
}

/// The same blocks on every rank.
World equal_world(NodeLayout layout, std::size_t blocks) {
  std::vector<Block> same;
  for (std::size_t i = 0; i < blocks; ++i) same.push_back(block_of(i, i % 10 == 0 ? 37 : 100));
  std::vector<std::vector<Block>> all(layout.ranks(), same);
  return world_of(std::move(layout), std::move(all));
}

TEST(ReplicationPlan, OneCopyOfUnsharedBlocksSendsNothing) {
  const Outcome outcome(world_of(even_layout(2, 1, 1), {{block_of(1, 100)}, {block_of(2, 100)}}),
                        Mode::collective);
  for (Rank rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(outcome.plans[rank].stored().size(), 1u);
    EXPECT_TRUE(outcome.plans[rank].sends().empty());
    EXPECT_EQ(holders(outcome.plans[rank], 0), std::vector<Rank>{rank});
  }
}

TEST(ReplicationPlan, BlocksWithEnoughNaturalCopiesAreSentByNobody) {
  const Outcome outcome(equal_world(even_layout(4, 1, 2), 8), Mode::collective);
  std::size_t stored = 0;
  for (const ReplicationPlan& plan : outcome.plans) {
    stored += plan.stored().size();
    EXPECT_TRUE(plan.sends().empty());
  }
  EXPECT_EQ(stored, 8u * 2);
}

TEST(ReplicationPlan, MissingCopiesAreSharedAmongDesignatedRanks) {
  // Ranks 0 and 1 have 40 blocks; K = 4 lacks two copies of each, one from either.
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < 40; ++i) blocks.push_back(block_of(i, 100));
  const Outcome outcome(world_of(even_layout(5, 1, 4), {blocks, blocks, {}, {}, {}}),
                        Mode::collective);
  EXPECT_EQ(outcome.send_bytes, (std::vector<std::uint64_t>{4000, 4000, 0, 0, 0}));
  expect_every_block_is_safe(outcome);
  expect_plans_are_whole(outcome);
}

TEST(ReplicationPlan, AnOddMissingCopyIsNotAlwaysTheSameRanks) {
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < 400; ++i) blocks.push_back(block_of(i, 100));
  const Outcome outcome(world_of(even_layout(3, 1, 3), {blocks, blocks, {}}), Mode::collective);
  EXPECT_EQ(outcome.send_bytes[0] + outcome.send_bytes[1], 40000u);
  EXPECT_NEAR(static_cast<double>(outcome.send_bytes[0]), 20000, 4000);
}

TEST(ReplicationPlan, TheNodeOfAHolderIsSkipped) {
  // Ranks 0, 1 on node 0, 2 on node 1, 3 on node 2. Ranks 0 and 2 share a block; K = 3.
  const Block shared = block_of(1, 100);
  const Outcome outcome(world_of(layout_of({0, 0, 1, 2}, 3), {{shared}, {}, {shared}, {}}),
                        Mode::collective);
  EXPECT_EQ(holders(outcome.plans[0], 0), (std::vector<Rank>{0, 2, 3}));
  EXPECT_EQ(holders(outcome.plans[2], 0), (std::vector<Rank>{0, 2, 3}));
  expect_every_block_is_safe(outcome);
}

TEST(ReplicationPlan, RanksOfOneNodeStoreABlockOnce) {
  const Block shared = block_of(1, 100);
  const Outcome outcome(world_of(layout_of({0, 0, 1}, 2), {{shared}, {shared}, {}}),
                        Mode::collective);
  EXPECT_EQ(outcome.plans[0].stored().size() + outcome.plans[1].stored().size(), 1u);
  EXPECT_EQ(holders(outcome.plans[0], 0), holders(outcome.plans[1], 0));
  expect_every_block_is_safe(outcome);
}

TEST(ReplicationPlan, WithoutDedupDuplicatesAreStoredAndSentToo) {
  const Block block = block_of(1, 100);
  const Outcome outcome(world_of(even_layout(3, 1, 2), {{block, block, block}, {block}, {}}),
                        Mode::none);
  EXPECT_EQ(outcome.plans[0].stored().size(), 3u);
  EXPECT_EQ(outcome.sent_bytes(0), 300u);
  EXPECT_EQ(outcome.sent_bytes(1), 100u);
  const Outcome local(outcome.world, Mode::local);
  EXPECT_EQ(local.sent_bytes(0), 100u);
}

TEST(ReplicationPlan, ATableThatCountsOnMissingBlocksIsRefused) {
  const NodeLayout layout = even_layout(2, 1, 1);
  const std::vector<Block> blocks{block_of(1, 100), block_of(2, 100)};
  const auto table = FrequentBlocks::from_local(blocks, 0, 10);
  EXPECT_TRUE(ReplicationPlanner::make(layout, table, blocks, 0));
  EXPECT_TRUE(ReplicationPlanner::make(layout, table, {}, 1)) << "it counts on rank 0 only";
  const auto planner = ReplicationPlanner::make(layout, table, std::span(blocks).first(1), 0);
  ASSERT_FALSE(planner);
  EXPECT_EQ(planner.error().code(), Code::corruption);
  EXPECT_NE(planner.error().message().find(to_hex(blocks[1].fingerprint)), std::string::npos);
}

TEST(ReplicationPlan, FingerprintsNeedNotBeUniform) {
  // All in one place of the index, at either end of it.
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < 100; ++i) {
    blocks.push_back({{i, 0}, 100});
    blocks.push_back({{i, ~std::uint64_t{0}}, 100});
  }
  const Outcome outcome(world_of(even_layout(3, 1, 2), {blocks, blocks, blocks}), Mode::collective);
  EXPECT_EQ(outcome.table.entries().size(), 200u);
  expect_every_block_is_safe(outcome);
  std::size_t stored = 0;
  for (const ReplicationPlan& plan : outcome.plans) stored += plan.stored().size();
  EXPECT_EQ(stored, 400u);
}

TEST(ReplicationPlan, EqualDataIsStoredEvenlyWhateverTheTree) {
  for (const auto& [nodes, each, copies] : std::vector<std::array<Rank, 3>>{{8, 1, 3},
                                                                            {16, 1, 2},
                                                                            {7, 1, 3},
                                                                            {4, 4, 2},
                                                                            {4, 4, 3},
                                                                            {4, 4, 4},
                                                                            {13, 1, 6},
                                                                            {6, 3, 1},
                                                                            {24, 2, 3}}) {
    for (const Tree tree : {Tree::balanced, Tree::chain, Tree::random}) {
      const Outcome outcome(equal_world(even_layout(nodes, each, copies), 1000), Mode::collective,
                            tree);
      std::uint64_t most = 0;
      std::uint64_t sum = 0;
      for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
        sum += outcome.stored_bytes(rank);
        most = std::max(most, outcome.stored_bytes(rank));
      }
      const double mean = static_cast<double>(sum) / static_cast<double>(outcome.plans.size());
      EXPECT_LE(static_cast<double>(most), 1.1 * mean + 100)
          << nodes << " x " << each << ", " << copies << " copies, tree " << static_cast<int>(tree);
      EXPECT_EQ(sum, copies * (900u * 100 + 100u * 37));
    }
  }
}

TEST(ReplicationPlan, TheTableShiftsSharedBlocksToRanksWithFewOfTheirOwn) {
  // All share 60 blocks; ranks 0 and 1 also have 40 of their own. One copy: 20 each would be even
  // in shares, but the others have nothing else to store.
  std::vector<std::vector<Block>> blocks(6);
  for (std::uint64_t i = 0; i < 60; ++i)
    for (auto& of_rank : blocks) of_rank.push_back(block_of(i, 100));
  for (std::uint64_t i = 0; i < 80; ++i) blocks[i % 2].push_back(block_of(1000 + i, 100));
  const Outcome outcome(world_of(even_layout(6, 1, 1), blocks), Mode::collective);
  for (Rank rank = 0; rank < 6; ++rank)
    EXPECT_LE(outcome.stored_bytes(rank), 4100u) << "rank " << rank;
}

TEST(ReplicationPlan, UnsharedBlocksNeedNotBeInTheTable) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    World world = random_world(seed);
    world.capacity = 100000;
    const Outcome all(world, Mode::collective);
    const Outcome shared(world, Mode::collective, Tree::balanced, true);
    ASSERT_EQ(all.send_bytes, shared.send_bytes);
    for (Rank rank = 0; rank < all.plans.size(); ++rank) {
      ASSERT_EQ(all.plans[rank].stored(), shared.plans[rank].stored());
      for (std::uint32_t block = 0; block < all.world.blocks[rank].size(); ++block)
        ASSERT_EQ(holders(all.plans[rank], block), holders(shared.plans[rank], block));
    }
  }
}

}  // namespace
}  // namespace belay::dedup
