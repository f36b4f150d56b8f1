// SPDX-License-Identifier: Apache-2.0
// Windows over MPI: between ranks that share memory, between ranks that do not (as on several
// hosts), and where both kinds meet.
#include "comm/mpi_group.hpp"
#include "conformance/exchange_checks.hpp"
#include "conformance/window_checks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <string>
#include <tuple>

namespace belay::ranks {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kPatience_ns = 20'000'000'000;
constexpr milliseconds kDeadline(300);

std::unique_ptr<Group> world_group(Rank most_neighbours, std::chrono::nanoseconds timeout) {
  auto group = make_mpi_group(MPI_COMM_WORLD, static_cast<std::uint64_t>(timeout.count()),
                              os::system_clock(), most_neighbours);
  EXPECT_TRUE(group) << group.error().message();
  return group ? *std::move(group) : nullptr;
}

std::string name_of_reach(Rank most_neighbours) {
  if (most_neighbours == 0) return "AllShareMemory";
  return most_neighbours == 1 ? "NobodySharesMemory" : "PairsShareMemory";
}

class WindowConformance : public ::testing::TestWithParam<std::tuple<Rank, GroupCheck>> {};

TEST_P(WindowConformance, Holds) {
  const auto group = world_group(std::get<0>(GetParam()), std::chrono::nanoseconds(kPatience_ns));
  ASSERT_TRUE(group);
  std::get<1>(GetParam()).run(*group);
  const auto closed = group->close();
  EXPECT_TRUE(closed) << closed.error().message();
}

INSTANTIATE_TEST_SUITE_P(Mpi, WindowConformance,
                         ::testing::Combine(::testing::Values(0, 1, 2),
                                            ::testing::ValuesIn(kWindowChecks)),
                         [](const auto& tested) {
                           return name_of_reach(std::get<0>(tested.param)) +
                                  std::get<1>(tested.param).name;
                         });

class WindowReach : public ::testing::TestWithParam<Rank> {};

TEST_P(WindowReach, MuchMoreThanTheWindowMovesInRounds) {
  const auto group = world_group(GetParam(), std::chrono::nanoseconds(kPatience_ns));
  ASSERT_TRUE(group);
  if (group->size() < 4) GTEST_SKIP() << "4 ranks do";
  check_large_volume(*group);
  EXPECT_TRUE(group->close());
}

TEST_P(WindowReach, ARankThatStaysAwayFromARoundIsLost) {
  const auto group = world_group(GetParam(), kDeadline);
  ASSERT_TRUE(group);
  if (group->size() < 4) GTEST_SKIP() << "4 ranks do";
  check_lost_target(*group, kDeadline);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_P(WindowReach, AWindowMayBeDestroyedWithoutAWordToTheOthers) {
  const auto group = world_group(GetParam(), std::chrono::nanoseconds(kPatience_ns));
  ASSERT_TRUE(group);
  auto window = opened(*group, 100'000);
  ASSERT_TRUE(window);
  check_put_round(*group, *window, [](Rank, Rank) { return 1000; }, {300});
  if (group->rank() == 0) window.reset();
  check_many_rounds(*group);
  EXPECT_TRUE(group->close());
}

TEST_P(WindowReach, IsNotUsedAfterClose) {
  const auto group = world_group(GetParam(), std::chrono::nanoseconds(kPatience_ns));
  ASSERT_TRUE(group);
  const auto window = opened(*group, 100);
  ASSERT_TRUE(window);
  close_window(*window);
  EXPECT_TRUE(window->bytes().empty());
  EXPECT_EQ(window->put({}, {}).error().code(), Code::invalid_argument);
  EXPECT_EQ(window->close().error().code(), Code::invalid_argument);
  EXPECT_TRUE(group->close());
}

INSTANTIATE_TEST_SUITE_P(Mpi, WindowReach, ::testing::Values(0, 1, 2),
                         [](const auto& tested) { return name_of_reach(tested.param); });

TEST(Exchange, ASenderThatStaysAwayIsLostAtTheDeadline) {
  const auto group = world_group(0, kDeadline);
  ASSERT_TRUE(group);
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  check_lost_sender(*group, kDeadline);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Nobody receives what rank 0 sends; the bytes it was given may go once the call has failed.
TEST(Exchange, AReceiverThatStaysAwayIsLostAtTheDeadline) {
  const auto group = world_group(0, kDeadline);
  ASSERT_TRUE(group);
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  if (group->rank() == 0) {
    auto bytes = bytes_of(0, 40u << 20);
    const Message out[] = {{1, bytes}};
    const auto lost = group->exchange(out, {});
    ASSERT_FALSE(lost);
    EXPECT_EQ(lost.error().code(), Code::peer_lost);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Duplicate, NeedsMpiToServeSeveralThreads) {
  const auto group = world_group(0, std::chrono::nanoseconds(kPatience_ns));
  ASSERT_TRUE(group);
  const auto second = group->duplicate();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::unsupported);
  EXPECT_NE(second.error().message().find("MPI_THREAD_MULTIPLE"), std::string::npos);
  check_reduce(*group);
  EXPECT_TRUE(group->close());
}

}  // namespace
}  // namespace belay::ranks
