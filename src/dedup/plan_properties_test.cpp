// SPDX-License-Identifier: Apache-2.0
// What must hold for whatever layout and data.
#include "dedup/plan_world_test.hpp"

#include <array>

namespace belay::dedup {
namespace {

constexpr std::uint64_t kWorlds = 250;

class PlanProperties : public ::testing::TestWithParam<Mode> {};

TEST_P(PlanProperties, EveryBlockIsOnKNodesAndItsRankKnowsWhere) {
  for (std::uint64_t seed = 0; seed < kWorlds; ++seed) {
    const Outcome outcome(random_world(seed), GetParam());
    expect_every_block_is_safe(outcome);
    expect_plans_are_whole(outcome);
    ASSERT_FALSE(HasFatalFailure()) << "world " << seed;
  }
}

TEST_P(PlanProperties, WindowsAreFilledExactly) {
  for (std::uint64_t seed = 0; seed < kWorlds; ++seed) {
    const Outcome outcome(random_world(seed), GetParam());
    const std::uint64_t least = outcome.world.max_block_bytes;
    for (const std::uint64_t window : {least, 3 * least + 1, std::uint64_t{1} << 40})
      expect_streams_are_exact(outcome, window);
    ASSERT_FALSE(HasFatalFailure()) << "world " << seed;
  }
}

TEST_P(PlanProperties, TheSameInputsGiveTheSamePlan) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Outcome one(random_world(seed), GetParam());
    const Outcome two(random_world(seed), GetParam());
    ASSERT_EQ(one.table, two.table);
    for (Rank rank = 0; rank < one.plans.size(); ++rank) {
      ASSERT_EQ(one.ring[0].rank_at(rank), two.ring[0].rank_at(rank));
      ASSERT_EQ(one.received_bytes(rank), two.received_bytes(rank));
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<Mode>& mode) {
  constexpr std::array kNames{"None", "Local", "Collective", "CollectiveUnshuffled"};
  return kNames[static_cast<std::size_t>(mode.param)];
}

INSTANTIATE_TEST_SUITE_P(Modes, PlanProperties,
                         ::testing::Values(Mode::none, Mode::local, Mode::collective,
                                           Mode::collective_unshuffled),
                         name_of);

TEST(Plans, AnyTreeOfMergesGivesAValidPlan) {
  for (std::uint64_t seed = 0; seed < kWorlds; ++seed) {
    for (const Tree tree : {Tree::chain, Tree::random}) {
      const Outcome outcome(random_world(seed), Mode::collective, tree);
      expect_every_block_is_safe(outcome);
      expect_plans_are_whole(outcome);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << "world " << seed;
    }
  }
}

TEST(Plans, CollectiveNeverStoresOrSendsMoreThanLocalNorThatMoreThanNone) {
  for (std::uint64_t seed = 0; seed < kWorlds; ++seed) {
    std::vector<std::uint64_t> stored;
    std::vector<std::uint64_t> sent;
    for (const Mode mode : {Mode::none, Mode::local, Mode::collective}) {
      const Outcome outcome(random_world(seed), mode);
      stored.push_back(0);
      sent.push_back(0);
      for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
        stored.back() += outcome.stored_bytes(rank);
        sent.back() += outcome.sent_bytes(rank);
      }
    }
    ASSERT_TRUE(std::is_sorted(stored.rbegin(), stored.rend())) << "world " << seed;
    ASSERT_TRUE(std::is_sorted(sent.rbegin(), sent.rend())) << "world " << seed;
  }
}

/// The paper's largest job: 408 ranks on 34 nodes, partly duplicated blocks.
World paper_world(std::uint32_t copies, std::size_t capacity) {
  World world{.layout = even_layout(34, 12, copies), .capacity = capacity, .blocks = {}};
  world.max_block_bytes = 4096;
  Random random(copies);
  for (Rank rank = 0; rank < world.layout.ranks(); ++rank) {
    std::vector<Block> blocks;
    for (std::uint64_t i = 0; i < 20; ++i) {
      blocks.push_back(block_of(i, 4096));                                       // all have it
      blocks.push_back(block_of(1000 + below(random, 2000), 4096));              // a few have it
      blocks.push_back(block_of(10000 + rank / 2 * 20 + i, i == 0 ? 9 : 4096));  // two have it
      blocks.push_back(block_of(100000 + rank * 20 + i, 4096));                  // one has it
    }
    world.blocks.push_back(std::move(blocks));
  }
  return world;
}

TEST(Plans, At408RanksOn34NodesEveryBlockIsOnKNodes) {
  for (const std::uint32_t copies : {1u, 2u, 3u, 6u})
    for (const std::size_t capacity : {std::size_t{300}, std::size_t{1} << 17}) {
      const Outcome outcome(paper_world(copies, capacity), Mode::collective);
      expect_every_block_is_safe(outcome);
      expect_plans_are_whole(outcome);
      ASSERT_FALSE(::testing::Test::HasFatalFailure()) << copies << " copies";
    }
}

TEST(Plans, At408RanksOn34NodesLoadsAreReceivedEvenly) {
  for (const std::uint32_t copies : {2u, 3u, 6u})
    for (const Mode mode : {Mode::none, Mode::collective}) {
      const Outcome outcome(paper_world(copies, 1 << 17), mode);
      std::uint64_t most = 0;
      std::uint64_t sum = 0;
      for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
        std::uint64_t bytes = 0;
        for (const std::uint64_t from : outcome.received_bytes(rank)) bytes += from;
        most = std::max(most, bytes);
        sum += bytes;
      }
      const double mean = static_cast<double>(sum) / 408;
      EXPECT_LE(static_cast<double>(most), 1.6 * mean)
          << copies << " copies, mode " << static_cast<int>(mode);
    }
}

}  // namespace
}  // namespace belay::dedup
