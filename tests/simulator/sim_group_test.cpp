// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_group.hpp"

#include "conformance/exchange_checks.hpp"
#include "conformance/group_checks.hpp"
#include "conformance/window_checks.hpp"

#include <gtest/gtest.h>

namespace belay::simulator {
namespace {

constexpr std::uint64_t kTimeoutNs = 1'000'000'000;

/// Ranks of one run, each a task that plays with its group.
class SimRanks {
 public:
  explicit SimRanks(Rank size, std::vector<Kill> kills = {})
      : world_(size + 7, 2, threads_, false),
        hub_(world_, size, [this](const std::string& text) { complaints += text; }) {
    world_.start_run(size, std::move(kills));
  }
  void play(const std::function<void(ranks::Group&)>& body) {
    for (Rank rank = 0; rank < world_.ranks(); ++rank)
      world_.scheduler().spawn(
          "rank", [&, rank] { body(*make_sim_group(hub_, world_.process(rank), kTimeoutNs)); });
    world_.scheduler().run();
  }
  World& world() { return world_; }
  std::string complaints;

 private:
  TaskThreads threads_;
  World world_;
  SimHub hub_;
};

class SimGroupConformance : public ::testing::TestWithParam<ranks::GroupCheck> {};

TEST_P(SimGroupConformance, Holds) {
  for (const Rank size : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(size);
    SimRanks ranks(size);
    ranks.play([&](ranks::Group& group) {
      EXPECT_EQ(group.size(), size);
      GetParam().run(group);
      EXPECT_TRUE(group.close());
    });
    EXPECT_EQ(ranks.complaints, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Group, SimGroupConformance, ::testing::ValuesIn(ranks::kGroupChecks),
                         ranks::name_of_check);
INSTANTIATE_TEST_SUITE_P(Exchange, SimGroupConformance, ::testing::ValuesIn(ranks::kExchangeChecks),
                         ranks::name_of_check);
INSTANTIATE_TEST_SUITE_P(Window, SimGroupConformance, ::testing::ValuesIn(ranks::kWindowChecks),
                         ranks::name_of_check);

TEST(SimGroup, ARankThatStaysAwayIsLostAtTheVirtualDeadlineAndForGood) {
  SimRanks ranks(3);
  ranks.play([&](ranks::Group& group) {
    if (group.rank() == 2) return;
    std::uint64_t value = 1;
    const auto lost = group.reduce({&value, 1}, ranks::Reduction::sum);
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), Code::peer_lost);
    EXPECT_EQ(value, 1u);
    const std::uint64_t now = ranks.world().scheduler().now_ns();
    EXPECT_GE(now, kTimeoutNs);
    EXPECT_LT(now, 2 * kTimeoutNs);
    EXPECT_EQ(group.gather({}).error().code(), Code::peer_lost);
    EXPECT_EQ(group.broadcast({}, 0).error().code(), Code::peer_lost);
    EXPECT_EQ(group.close().error().code(), Code::peer_lost);
    EXPECT_LT(ranks.world().scheduler().now_ns(), 2 * kTimeoutNs);
  });
}

TEST(SimGroup, AKilledRankLosesItsPeersAtOnceAndTheyLoseItInTime) {
  SimRanks ranks(2, {{Rank{1}, 3, Manner::before}});
  std::vector<int> rounds(2);
  ranks.play([&](ranks::Group& group) {
    std::uint64_t value = 1;
    while (group.reduce({&value, 1}, ranks::Reduction::sum)) ++rounds[group.rank()];
    EXPECT_EQ(group.reduce({&value, 1}, ranks::Reduction::sum).error().code(), Code::peer_lost);
  });
  EXPECT_EQ(rounds, (std::vector<int>{2, 2}));
  EXPECT_TRUE(ranks.world().process(1).killed);
}

TEST(SimGroup, AnExchangeWaitsForItsSendersUntilTheVirtualDeadline) {
  SimRanks ranks(2);
  ranks.play([&](ranks::Group& group) {
    if (group.rank() == 1) return;
    const Rank from[] = {1};
    EXPECT_EQ(group.exchange({}, from).error().code(), Code::peer_lost);
    EXPECT_GE(ranks.world().scheduler().now_ns(), kTimeoutNs);
    EXPECT_EQ(group.exchange({}, from).error().code(), Code::peer_lost);
    EXPECT_EQ(group.open_window(1).error().code(), Code::peer_lost);
    EXPECT_LT(ranks.world().scheduler().now_ns(), 2 * kTimeoutNs);
  });
}

TEST(SimGroup, AKillInTheMiddleOfAnExchangeLeavesHalfOfTheMessages) {
  SimRanks ranks(3, {{Rank{0}, 1, Manner::torn}});
  ranks.play([&](ranks::Group& group) {
    const auto bytes = ranks::bytes_of(0, 10);
    const ranks::Message out[] = {{1, bytes}, {2, bytes}};
    const Rank from[] = {0};
    if (group.rank() == 0)
      EXPECT_EQ(group.exchange(out, {}).error().code(), Code::peer_lost);
    else
      EXPECT_EQ(group.exchange({}, from).has_value(), group.rank() == 1);
  });
}

TEST(SimGroup, ADuplicateHasRoundsOfItsOwn) {
  SimRanks ranks(3);
  ranks.play([](ranks::Group& group) {
    auto first = group.duplicate();
    auto second = group.duplicate();
    ASSERT_TRUE(first && second);
    ranks::check_many_rounds(**second);
    ranks::check_many_small(group);
    ranks::check_order(**first);
    EXPECT_TRUE((*first)->close() && (*second)->close() && group.close());
  });
  EXPECT_EQ(ranks.complaints, "");
}

TEST(SimGroup, RanksThatCallDifferentCollectivesAreFoundOut) {
  SimRanks ranks(2);
  ranks.play([&](ranks::Group& group) {
    std::uint64_t value = 1;
    if (group.rank() == 0)
      EXPECT_FALSE(group.reduce({&value, 1}, ranks::Reduction::sum));
    else
      EXPECT_FALSE(group.gather({}));
  });
  EXPECT_NE(ranks.complaints, "");
}

}  // namespace
}  // namespace belay::simulator
