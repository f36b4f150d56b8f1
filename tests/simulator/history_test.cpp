// SPDX-License-Identifier: Apache-2.0
#include "simulator/history.hpp"

#include "simulator/oracle.hpp"

#include <gtest/gtest.h>

namespace belay::simulator {
namespace {

TEST(History, TheSeedRepeatsEverything) {
  TaskThreads threads;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto first = run_history(seed, threads, false);
    const auto second = run_history(seed, threads, false);
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.violations, second.violations) << "seed " << seed;
    EXPECT_GT(first.operations, 0u);
  }
}

TEST(History, StragglersOfAKilledJobAreStoppedByTheNext) {
  TaskThreads threads;
  std::uint64_t overlaps = 0;
  std::uint64_t stopped = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const auto outcome = run_history(seed, threads, false);
    EXPECT_TRUE(outcome.violations.empty()) << "seed " << seed << ": " << outcome.violations[0];
    overlaps += outcome.overlaps;
    stopped += outcome.stopped;
  }
  EXPECT_GT(overlaps, 20u);
  EXPECT_GT(stopped, 0u);
}

class LostNodes : public ::testing::TestWithParam<HistoryKind> {};

TEST_P(LostNodes, AreHealedAndEveryBlockIsAsSafeAsBefore) {
  TaskThreads threads;
  std::uint64_t losses = 0;
  std::uint64_t healings = 0;
  std::uint64_t walks = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto outcome = run_history(seed, threads, false, GetParam());
    EXPECT_TRUE(outcome.violations.empty()) << "seed " << seed << ": " << outcome.violations[0];
    losses += outcome.losses;
    healings += outcome.healings;
    walks += outcome.walks;
  }
  EXPECT_GT(losses, 20u);
  EXPECT_GT(healings, 3u);
  EXPECT_GT(walks, 20u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LostNodes,
                         ::testing::Values(HistoryKind::replicas, HistoryKind::erasure),
                         [](const auto& kind) {
                           return kind.param == HistoryKind::replicas ? "Copies" : "Parity";
                         });

class OracleTest : public ::testing::Test {
 protected:
  static std::vector<std::byte> bytes(int value) { return {std::byte(value), std::byte{1}}; }

  /// Both ranks capture `value` as `version`.
  void capture(std::size_t call, Version version, int value) {
    for (const Rank rank : {0u, 1u}) {
      Attempt& attempt = oracle.begin_capture(call, rank);
      attempt.ranks[rank].state = {{"a", bytes(value)}};
      oracle.end_capture(attempt, rank, version, false);
    }
  }
  /// Rank 0 gets version `version` with `value`, rank 1 with `other`.
  void restore(Version version, int value, int other) {
    RestoreEvent event;
    event.run = oracle.run();
    event.ranks.resize(2);
    for (auto& part : event.ranks) {
      part.returned = true;
      part.version = version;
    }
    event.ranks[0].after = {{"a", bytes(value)}};
    event.ranks[1].after = {{"a", bytes(other)}};
    oracle.check_restore(event, 0);
  }

  Oracle oracle{2, 1};
};

TEST_F(OracleTest, AcceptsTheNewestVersion) {
  capture(0, 1, 10);
  capture(1, 2, 20);
  oracle.told(0, 2, "wait()");
  oracle.speak_of(1);
  restore(2, 20, 20);
  EXPECT_TRUE(oracle.violations().empty());
}

TEST_F(OracleTest, FindsAMixture) {
  capture(0, 1, 10);
  capture(1, 2, 20);
  oracle.speak_of(1);
  restore(2, 20, 10);
  ASSERT_EQ(oracle.violations().size(), 1u);
  EXPECT_EQ(oracle.violations()[0],
            "restart 1: rank 1: region 'a' differs at byte 0 from version 2");
}

TEST_F(OracleTest, FindsAVersionThatIsOlderThanPromised) {
  capture(0, 1, 10);
  capture(1, 2, 20);
  oracle.told(1, 2, "wait()");
  oracle.speak_of(1);
  restore(1, 10, 10);
  EXPECT_EQ(oracle.violations().size(), 1u);
}

TEST_F(OracleTest, DamageExcusesAnOlderVersion) {
  capture(0, 1, 10);
  capture(1, 2, 20);
  oracle.told(1, 2, "wait()");
  oracle.damage({2}, false);
  oracle.speak_of(1);
  restore(1, 10, 10);
  EXPECT_TRUE(oracle.violations().empty());
}

TEST_F(OracleTest, AsManyLossesAsThereAreCopiesExcuseAnOlderVersion) {
  oracle.set_copies(0, 2);
  capture(0, 1, 10);
  capture(1, 2, 20);
  oracle.told(1, 2, "wait()");
  oracle.wound("node-0", false);
  oracle.speak_of(1);
  restore(1, 10, 10);
  EXPECT_EQ(oracle.violations().size(), 1u);
  oracle.wound("node-1", false);
  restore(1, 10, 10);
  EXPECT_EQ(oracle.violations().size(), 1u);
}

TEST_F(OracleTest, KnowsTheVersionThatRestoreTook) {
  capture(0, 1, 10);
  oracle.told(0, 1, "wait()");
  oracle.speak_of(1);
  for (const Rank rank : {0u, 1u}) oracle.begin_healing(0, rank);
  for (const Rank rank : {0u, 1u}) oracle.end_healing(0, rank, Version{5}, {{"a", bytes(10)}}, false);
  oracle.speak_of(2);
  restore(5, 10, 10);
  EXPECT_TRUE(oracle.violations().empty());
  restore(1, 10, 10);
  EXPECT_EQ(oracle.violations().size(), 1u);
}

TEST_F(OracleTest, FindsANumberThatIsUsedAgain) {
  capture(0, 1, 10);
  oracle.speak_of(1);
  capture(0, 1, 10);
  EXPECT_FALSE(oracle.violations().empty());
}

TEST_F(OracleTest, FindsAVersionThatOneRankDidNotCapture) {
  Attempt& attempt = oracle.begin_capture(0, 0);
  attempt.ranks[0].state = {{"a", bytes(10)}};
  oracle.end_capture(attempt, 0, Version{1}, false);
  oracle.speak_of(1);
  restore(1, 10, 10);
  EXPECT_FALSE(oracle.violations().empty());
}

TEST_F(OracleTest, FindsAPromiseOfAVersionThatOneRankFailedToCapture) {
  capture(0, 1, 10);
  Attempt& attempt = oracle.begin_capture(0, 1);
  oracle.end_capture(attempt, 1, Unexpected(Error(Code::io, "no")), false);
  oracle.told(0, 1, "wait()");
  EXPECT_FALSE(oracle.violations().empty());
}

TEST_F(OracleTest, FindsAFirstStartThatIsNone) {
  capture(0, 1, 10);
  oracle.told(0, 1, "wait()");
  oracle.damage({1}, false);
  oracle.speak_of(1);
  oracle.check_latest(0, {}, true);
  EXPECT_EQ(oracle.violations().size(), 1u);
}

TEST_F(OracleTest, RecognisesAVersionWhoseNumberNobodyLivedToLearn) {
  for (const Rank rank : {0u, 1u})
    oracle.begin_capture(0, rank).ranks[rank].state = {{"a", bytes(10)}};
  oracle.speak_of(1);
  restore(1, 10, 10);
  EXPECT_TRUE(oracle.violations().empty());
  restore(2, 11, 11);
  EXPECT_EQ(oracle.violations().size(), 1u);
}

}  // namespace
}  // namespace belay::simulator
