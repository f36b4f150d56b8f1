// SPDX-License-Identifier: Apache-2.0
// What every Group must do with windows: more of the checks of group_checks.hpp.
#pragma once

#include "conformance/exchange_checks.hpp"

#include <numeric>

namespace belay::ranks {

inline std::unique_ptr<Window> opened(Group& group, std::uint64_t bytes) {
  auto window = group.open_window(bytes);
  EXPECT_TRUE(window) << window.error().message();
  if (!window) return nullptr;
  EXPECT_EQ((*window)->bytes().size(), bytes);
  return *std::move(window);
}

inline void close_window(Window& window) {
  const auto closed = window.close();
  EXPECT_TRUE(closed) << closed.error().message();
}

/// `bytes` in pieces of these lengths, over and over, 0 among them perhaps.
inline std::vector<std::span<const std::byte>> in_pieces(std::span<const std::byte> bytes,
                                                         const std::vector<std::size_t>& lengths) {
  std::vector<std::span<const std::byte>> pieces;
  for (std::size_t at = 0, i = 0; at < bytes.size(); ++i) {
    const std::size_t length = std::min(lengths[i % lengths.size()], bytes.size() - at);
    pieces.push_back(bytes.subspan(at, length));
    at += length;
  }
  return pieces;
}

/// Every rank puts to every rank, itself too, `bytes(from, to)` at the place behind those of lower
/// ranks; `pieces` says how they are cut.
inline void check_put_round(Group& group, Window& window, const Lengths& bytes,
                            const std::vector<std::size_t>& pieces, Rank turn = 0) {
  const Rank me = group.rank();
  const auto place = [&](Rank from, Rank to) {
    std::uint64_t at = 0;
    for (Rank lower = 0; lower < from; ++lower) at += bytes(lower, to);
    return at;
  };
  std::vector<std::vector<std::byte>> sent;
  std::vector<Put> puts;
  std::vector<Landing> landings;
  for (Rank other = group.size(); other-- > 0;) {
    sent.push_back(message_of(me, other, bytes(me, other), turn));
    puts.push_back({other, place(me, other), in_pieces(sent.back(), pieces)});
    landings.push_back({other, place(other, me), bytes(other, me)});
  }
  std::rotate(landings.begin(), landings.begin() + me, landings.end());
  const auto done = window.put(puts, landings);
  for (auto& bytes_sent : sent) std::fill(bytes_sent.begin(), bytes_sent.end(), std::byte{0xEE});
  ASSERT_TRUE(done) << done.error().message();
  for (Rank from = 0; from < group.size(); ++from) {
    const auto expected = message_of(from, me, bytes(from, me), turn);
    const auto landed = window.bytes().subspan(place(from, me), expected.size());
    EXPECT_TRUE(std::equal(landed.begin(), landed.end(), expected.begin()))
        << "from rank " << from << " in turn " << turn;
  }
}

inline void check_odd_puts(Group& group) {
  const auto bytes = [](Rank from, Rank to) { return std::size_t{70'001} * to + 333 * from + 1; };
  std::uint64_t total = 0;
  for (Rank from = 0; from < group.size(); ++from) total += bytes(from, group.rank());
  const auto window = opened(group, total);
  ASSERT_TRUE(window);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window->bytes().data()) % 4096, 0u);
  check_put_round(group, *window, bytes, {1u << 30});
  check_put_round(group, *window, bytes, {1, 0, 7, 4096, 333}, 1);
  close_window(*window);
}

/// Many small rounds: a round never overwrites what the one before brought before it was read.
inline void check_many_rounds(Group& group) {
  const auto window = opened(group, 50 * group.size());
  ASSERT_TRUE(window);
  for (Rank turn = 0; turn < 100; ++turn)
    check_put_round(
        group, *window, [&](Rank from, Rank to) { return (from + to + turn) % 50; }, {20, 3}, turn);
  close_window(*window);
}

/// Only odd ranks have memory, only even ranks put, rank 1 gets from all of them; then nobody does.
inline void check_uneven_windows(Group& group) {
  const auto puts = [](Rank from, Rank to) { return from % 2 == 0 && to == 1 ? 1000 : 0; };
  const bool odd = group.rank() % 2 == 1;
  const auto window = opened(group, odd ? 1000 * group.size() : 0);
  ASSERT_TRUE(window);
  check_put_round(group, *window, puts, {999});
  check_put_round(
      group, *window, [](Rank, Rank) { return 0; }, {1}, 1);
  ASSERT_TRUE(window->put({}, {}));
  close_window(*window);
}

inline void check_no_windows(Group& group) {
  const auto window = opened(group, 0);
  ASSERT_TRUE(window);
  ASSERT_TRUE(window->put({}, {}));
  close_window(*window);
}

/// Several puts from a rank to another in a round, given in any order, with gaps between them.
inline void check_scattered_puts(Group& group) {
  const Rank next = (group.rank() + 1) % group.size();
  const Rank previous = (group.rank() + group.size() - 1) % group.size();
  const auto window = opened(group, 10'000);
  ASSERT_TRUE(window);
  std::fill(window->bytes().begin(), window->bytes().end(), std::byte{0x55});
  const auto sent = message_of(group.rank(), next, 300);
  const std::span<const std::byte> bytes(sent);
  const Put puts[] = {{next, 9'900, {bytes.first(100)}},
                      {next, 500, {bytes.subspan(100, 1), bytes.subspan(101, 99)}},
                      {next, 7'000, {}},
                      {next, 0, {bytes.last(100)}}};
  const Landing landings[] = {
      {previous, 0, 100}, {previous, 9'900, 100}, {previous, 500, 100}, {previous, 1, 0}};
  const auto done = window->put(puts, landings);
  ASSERT_TRUE(done) << done.error().message();
  const auto expected = message_of(previous, group.rank(), 300);
  std::vector<std::byte> image(10'000, std::byte{0x55});
  std::copy_n(expected.begin(), 100, image.begin() + 9'900);
  std::copy_n(expected.begin() + 100, 100, image.begin() + 500);
  std::copy_n(expected.begin() + 200, 100, image.begin());
  EXPECT_TRUE(std::equal(image.begin(), image.end(), window->bytes().begin()));
  close_window(*window);
}

inline void check_two_windows(Group& group) {
  const auto first = opened(group, 100 * group.size());
  const auto second = opened(group, 200 * group.size());
  ASSERT_TRUE(first && second);
  check_put_round(
      group, *first, [](Rank, Rank) { return 100; }, {30}, 1);
  check_put_round(
      group, *second, [](Rank, Rank) { return 200; }, {30}, 2);
  const auto kept = message_of(0, group.rank(), 100, 1);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), first->bytes().begin()));
  close_window(*first);
  check_put_round(
      group, *second, [](Rank, Rank) { return 200; }, {64}, 3);
  close_window(*second);
}

/// One rank's mistake is refused on all ranks, moves nothing, and leaves them in step.
inline void check_wrong_puts(Group& group) {
  const auto window = opened(group, 100);
  ASSERT_TRUE(window);
  std::fill(window->bytes().begin(), window->bytes().end(), std::byte{0x55});
  const auto sent = bytes_of(group.rank(), 101);
  const std::span<const std::byte> bytes(sent);
  const std::vector<Put> wrong[] = {
      {{0, 0, {bytes}}},
      {{0, 1, {bytes.first(60), bytes.first(40)}}},
      {{0, ~0ull, {bytes.first(2)}}},
      {{group.size(), 0, {bytes.first(1)}}},
  };
  const auto expect_refused = [&](const Result<void>& refused) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::invalid_argument) << refused.error().message();
  };
  for (const auto& puts : wrong)
    expect_refused(window->put(group.rank() == group.size() - 1 ? puts : std::vector<Put>(), {}));
  const Landing landings[][1] = {{{0, 99, 2}}, {{0, 101, 0}}, {{group.size(), 0, 1}}};
  for (const auto& landing : landings)
    expect_refused(window->put(
        {}, group.rank() == 0 ? std::span<const Landing>(landing) : std::span<const Landing>()));
  EXPECT_EQ(std::count(window->bytes().begin(), window->bytes().end(), std::byte{0x55}), 100);
  close_window(*window);
  check_reduce(group);
}

/// More than all memory on one rank is refused on all.
inline void check_window_too_large(Group& group) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    const auto window = group.open_window(group.rank() == 0 ? bytes : 10);
    ASSERT_FALSE(window);
    EXPECT_EQ(window.error().code(), Code::no_space) << window.error().message();
  }
  check_no_windows(group);
}

inline constexpr GroupCheck kWindowChecks[] = {
    {"PutsOfOddLengthsAndPiecesLandWhereTheyShould", check_odd_puts},
    {"RoundsDoNotOvertakeEachOther", check_many_rounds},
    {"WindowsMayDifferInSizeAndBeEmpty", check_uneven_windows},
    {"AllWindowsMayBeEmpty", check_no_windows},
    {"ARankMayPutSeveralTimesIntoAWindow", check_scattered_puts},
    {"TwoWindowsDoNotDisturbEachOther", check_two_windows},
    {"WrongPutsAreRefusedOnAllRanksAndMoveNothing", check_wrong_puts},
    {"AWindowThatDoesNotFitIntoMemoryIsRefusedOnAllRanks", check_window_too_large},
};

/// 300 MiB and a little through a window of 16 MiB for each rank: every rank sends its share to all
/// others in rounds, from scattered pieces.
inline void check_large_volume(Group& group, std::uint64_t volume = (300ull << 20) + 12'345) {
  constexpr std::uint64_t kWindow = 16u << 20;
  const auto window = opened(group, kWindow);
  ASSERT_TRUE(window);
  const std::uint64_t slot = kWindow / group.size();
  const std::uint64_t share = volume / group.size() / group.size();
  Rank turn = 0;
  for (std::uint64_t moved = 0; moved < share; moved += slot, ++turn) {
    const std::uint64_t now = std::min(slot, share - moved);
    check_put_round(
        group, *window, [&](Rank, Rank) { return now; }, {16384, 100'000, 1}, turn);
  }
  close_window(*window);
}

/// The last rank opens a window with the others, then stays away for three deadlines. The window of
/// a group that broke is of no use, but can be destroyed. REQUIRES: as check_lost_peer().
inline void check_lost_target(Group& group, std::chrono::milliseconds deadline) {
  using Clock = std::chrono::steady_clock;
  auto window = opened(group, 1000);
  ASSERT_TRUE(window);
  if (group.rank() + 1 == group.size()) {
    std::this_thread::sleep_for(3 * deadline);
    static_cast<void>(window->put({}, {}));
    return;
  }
  const auto bytes = bytes_of(group.rank(), 10);
  const Put puts[] = {{group.size() - 1, 10 * group.rank(), {bytes}}};
  const auto start = Clock::now();
  const auto lost = window->put(puts, {});
  const auto waited = Clock::now() - start;
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Code::peer_lost) << lost.error().message();
  EXPECT_GE(waited, deadline * 9 / 10);
  EXPECT_LT(waited, deadline * 2 + std::chrono::seconds(5)) << "not even on a busy machine";
  const auto again = Clock::now();
  EXPECT_EQ(window->put({}, {}).error().code(), Code::peer_lost);
  EXPECT_EQ(window->close().error().code(), Code::peer_lost);
  EXPECT_EQ(group.open_window(10).error().code(), Code::peer_lost);
  window.reset();
  EXPECT_LT(Clock::now() - again, deadline / 2);
}

}  // namespace belay::ranks
