// SPDX-License-Identifier: Apache-2.0
#include "dedup/exchange_plan.hpp"

#include "dedup/plan_world_test.hpp"

namespace belay::dedup {
namespace {

/// The paper's Algorithm 3, started at the rank's own place instead of 0: the offsets of what a
/// rank sends to its K-1 successors. send_load[rank][j] goes to successor j.
std::vector<std::uint64_t> algorithm_3(const Ring& ring, std::size_t copies, Rank rank,
                                       const std::vector<std::vector<std::uint64_t>>& send_load) {
  std::vector<std::uint64_t> offsets(copies);
  for (std::size_t i = 1; i < copies; ++i) {
    const Rank successor = ring.rank_at((ring.place_of(rank) + i) % ring.size());
    for (std::size_t j = i + 1; j < copies; ++j) offsets[j] += send_load[successor][j - i];
  }
  return offsets;
}

/// The loads of all ranks by distance on the ring; empty if somebody sends to others than its K-1
/// successors.
std::vector<std::vector<std::uint64_t>> loads_by_distance(const Outcome& outcome) {
  const Ring& ring = outcome.ring.front();
  const std::size_t copies = outcome.world.layout.copies();
  std::vector<std::vector<std::uint64_t>> loads(ring.size(), std::vector<std::uint64_t>(copies));
  for (Rank rank = 0; rank < ring.size(); ++rank)
    for (const auto& send : outcome.plans[rank].sends()) {
      const std::size_t distance =
          (ring.place_of(send.receiver) + ring.size() - ring.place_of(rank)) % ring.size();
      if (distance >= copies) return {};
      loads[rank][distance] = send.bytes;
    }
  return loads;
}

void expect_algorithm_3(const Outcome& outcome,
                        const std::vector<std::vector<std::uint64_t>>& send_load) {
  const Ring& ring = outcome.ring.front();
  const std::size_t copies = outcome.world.layout.copies();
  for (Rank rank = 0; rank < ring.size(); ++rank) {
    const auto offsets = algorithm_3(ring, copies, rank, send_load);
    for (std::size_t j = 1; j < copies; ++j) {
      if (send_load[rank][j] == 0) continue;
      const Rank receiver = ring.rank_at((ring.place_of(rank) + j) % ring.size());
      const Stream stream = plan_stream(outcome.received_bytes(receiver), ring, receiver);
      ASSERT_EQ(stream.offsets[rank], offsets[j]);
    }
  }
}

TEST(Stream, HasSendersOneAfterTheOtherFromTheNearestBack) {
  const NodeLayout layout = even_layout(4, 1, 3);
  const Ring ring = Ring::unshuffled(layout);
  const Stream stream = plan_stream(std::vector<std::uint64_t>{50, 0, 7, 20}, ring, 1);
  EXPECT_EQ(stream.bytes, 77u);
  EXPECT_EQ(stream.offsets[0], 0u);
  EXPECT_EQ(stream.offsets[3], 50u);
  EXPECT_EQ(stream.offsets[2], 70u);
}

TEST(Stream, OfOneRankAloneIsEmpty) {
  const NodeLayout layout = even_layout(1, 1, 1);
  const Stream stream = plan_stream(std::vector<std::uint64_t>{0}, Ring::unshuffled(layout), 0);
  EXPECT_EQ(stream.bytes, 0u);
}

TEST(Stream, AgreesWithAlgorithm3WhereAllSendToTheirSuccessors) {
  int applied = 0;
  int unequal = 0;
  for (std::uint64_t seed = 0; seed < 250; ++seed)
    for (const Mode mode : {Mode::none, Mode::local, Mode::collective}) {
      const Outcome outcome(random_world(seed), mode);
      const auto loads = loads_by_distance(outcome);
      if (loads.empty() || outcome.world.layout.copies() < 3) continue;
      expect_algorithm_3(outcome, loads);
      ++applied;
      unequal += std::any_of(loads.begin(), loads.end(),
                             [](const auto& of_rank) { return of_rank[1] != of_rank[2]; });
    }
  EXPECT_GT(applied, 50);
  EXPECT_GT(unequal, 5) << "partly duplicated blocks go to fewer than K-1 successors";
}

TEST(Rounds, AWindowThatCannotHoldABlockIsAnInvalidArgument) {
  EXPECT_TRUE(Rounds::make(100, 100));
  const auto rounds = Rounds::make(99, 100);
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().code(), Code::invalid_argument);
  EXPECT_FALSE(Rounds::make(100, 0));
}

TEST(Rounds, AStreamThatFitsHasOneAndAWindowOfItsSize) {
  const auto rounds = *Rounds::make(1000, 100);
  EXPECT_EQ(rounds.count(0), 0u);
  EXPECT_EQ(rounds.window_bytes(0), 0u);
  EXPECT_EQ(rounds.count(900), 1u);
  EXPECT_EQ(rounds.window_bytes(900), 900u);
  EXPECT_EQ(rounds.count(5000), 6u);
  EXPECT_EQ(rounds.window_bytes(5000), 1000u);
}

TEST(Puts, PackBlocksAndSplitNone) {
  const auto rounds = *Rounds::make(250, 100);  // stride 151
  const std::vector<std::uint32_t> lengths{100, 100, 30, 100};
  // In the stream at 20, 120, 220, 250: the second begins in round 0 and ends beyond its stride.
  EXPECT_EQ(
      plan_puts(20, lengths, rounds),
      (std::vector<Put>{{.round = 0, .offset = 20, .bytes = 200, .first_block = 0, .blocks = 2},
                        {.round = 1, .offset = 69, .bytes = 130, .first_block = 2, .blocks = 2}}));
  EXPECT_TRUE(plan_puts(20, {}, rounds).empty());
}

TEST(Puts, OfTheLongestBlocksEndWithinTheWindow) {
  for (std::uint64_t window = 100; window < 320; ++window) {
    const auto rounds = *Rounds::make(window, 100);
    for (std::uint64_t offset = 0; offset < 350; offset += 7) {
      const std::vector<std::uint32_t> lengths(9, 100);
      const std::uint64_t stream_bytes = offset + 900;
      for (const Put& put : plan_puts(offset, lengths, rounds)) {
        ASSERT_LE(put.offset + put.bytes, rounds.window_bytes(stream_bytes));
        ASSERT_LT(put.round, rounds.count(stream_bytes));
      }
    }
  }
}

}  // namespace
}  // namespace belay::dedup
