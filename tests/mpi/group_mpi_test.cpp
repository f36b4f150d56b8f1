// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi_group.hpp"
#include "conformance/exchange_checks.hpp"
#include "conformance/group_checks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

namespace belay::ranks {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kPatience_ns = 20'000'000'000;

std::unique_ptr<Group> world_group(std::uint64_t timeout_ns = kPatience_ns) {
  auto group = make_mpi_group(MPI_COMM_WORLD, timeout_ns, os::system_clock());
  EXPECT_TRUE(group) << group.error().message();
  return group ? *std::move(group) : nullptr;
}

std::chrono::microseconds processor_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

class MpiGroupConformance : public ::testing::TestWithParam<GroupCheck> {};

TEST_P(MpiGroupConformance, Holds) {
  const auto group = world_group();
  ASSERT_TRUE(group);
  GetParam().run(*group);
  const auto closed = group->close();
  EXPECT_TRUE(closed) << closed.error().message();
}

INSTANTIATE_TEST_SUITE_P(Group, MpiGroupConformance, ::testing::ValuesIn(kGroupChecks),
                         name_of_check);
INSTANTIATE_TEST_SUITE_P(Exchange, MpiGroupConformance, ::testing::ValuesIn(kExchangeChecks),
                         name_of_check);

TEST(MpiGroup, GatherTakesSeveralRoundsForWhatOneCannotMove) {
  const auto group = world_group();
  ASSERT_TRUE(group);
  std::vector<std::size_t> lengths(group->size(), 3);
  lengths.back() = (18u << 20) + 1;
  check_gather_of(*group, lengths);
  EXPECT_TRUE(group->close());
}

TEST(MpiGroup, BroadcastAndReduceTakeSeveralRoundsForWhatOneCannotMove) {
  const auto group = world_group();
  ASSERT_TRUE(group);
  const std::size_t length = (17u << 20) + 3;
  auto bytes = bytes_of(group->rank(), length);
  ASSERT_TRUE(group->broadcast(bytes, group->size() - 1));
  EXPECT_TRUE(bytes == bytes_of(group->size() - 1, length));

  std::vector<std::uint64_t> values((17u << 17) + 1, group->rank());
  ASSERT_TRUE(group->reduce(values, Reduction::max));
  EXPECT_TRUE(values == std::vector<std::uint64_t>(values.size(), group->size() - 1));
  EXPECT_TRUE(group->close());
}

TEST(MpiGroup, KnowsTheCommunicatorAndLeavesItsErrorHandlerAlone) {
  MPI_Errhandler before = MPI_ERRHANDLER_NULL;
  MPI_Errhandler after = MPI_ERRHANDLER_NULL;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  const auto group = world_group();
  ASSERT_TRUE(group);
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  EXPECT_EQ(before, after);
  const auto* mpi_group = dynamic_cast<const MpiGroup*>(group.get());
  ASSERT_TRUE(mpi_group);
  EXPECT_EQ(mpi_group->communicator(), MPI_COMM_WORLD);
  EXPECT_TRUE(group->close());
}

TEST(MpiGroup, TakesAPartOfTheRanks) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  auto group = make_mpi_group(half, kPatience_ns, os::system_clock());
  ASSERT_TRUE(group);
  check_reduce(**group);
  check_broadcast(**group);
  EXPECT_TRUE((*group)->close());
  MPI_Comm_free(&half);
}

TEST(MpiGroup, PartsOfAGroupGoTheirOwnWays) {
  auto group = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_TRUE(group);
  check_subset(**group);
}

TEST(MpiGroup, RefusesTheNullCommunicator) {
  const auto group = make_mpi_group(MPI_COMM_NULL, kPatience_ns, os::system_clock());
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code(), Code::invalid_argument);
  EXPECT_NE(group.error().message().find("MPI_COMM_NULL"), std::string::npos);
}

TEST(MpiGroup, RefusesAnIntercommunicator) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) GTEST_SKIP() << "needs two ranks";
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &inter);
  const auto group = make_mpi_group(inter, kPatience_ns, os::system_clock());
  ASSERT_FALSE(group);
  EXPECT_EQ(group.error().code(), Code::invalid_argument);
  EXPECT_NE(group.error().message().find("intercommunicator"), std::string::npos);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

TEST(MpiGroup, IsNotUsedAfterClose) {
  const auto group = world_group();
  ASSERT_TRUE(group);
  ASSERT_TRUE(group->close());
  EXPECT_EQ(group->gather({}).error().code(), Code::invalid_argument);
  EXPECT_EQ(group->close().error().code(), Code::invalid_argument);
}

TEST(MpiGroup, MayBeDestroyedWithoutAWordToTheOthers) {
  auto group = world_group();
  ASSERT_TRUE(group);
  group.reset();
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Counts how often the group looks at the time: once for each poll after the first few hundred.
class CountingClock : public os::Clock {
 public:
  std::uint64_t now_ns() override {
    ++looks;
    return os::system_clock().now_ns();
  }
  std::int64_t wall_ns() override { return os::system_clock().wall_ns(); }
  void sleep_ns(std::uint64_t time_ns) override { os::system_clock().sleep_ns(time_ns); }

  int looks = 0;
};

TEST(MpiGroup, WaitingForASlowPeerTakesLittleProcessorTime) {
  CountingClock clock;
  auto made = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, clock);
  ASSERT_TRUE(made);
  const std::unique_ptr<Group> group = *std::move(made);
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  std::uint64_t value = 0;
  ASSERT_TRUE(group->reduce({&value, 1}, Reduction::sum));  // all are here
  const auto before = processor_time();
  clock.looks = 0;
  if (group->rank() == 0) std::this_thread::sleep_for(milliseconds(1000));
  ASSERT_TRUE(group->reduce({&value, 1}, Reduction::sum));
  EXPECT_LT(processor_time() - before, milliseconds(250)) << "of 1000 ms";
  // On a busy machine a rank that spins gets little processor time too, but it still looks often.
  EXPECT_LT(clock.looks, 6000) << "one for each 200 us, and some at the start";
  EXPECT_TRUE(group->close());
}

TEST(MpiGroup, APeerThatDoesNotDuplicateIsLost) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size < 2) GTEST_SKIP() << "needs two ranks";
  const auto deadline = milliseconds(300);
  // The last rank comes late, so that MPI is left with nothing half done.
  if (rank + 1 == size) std::this_thread::sleep_for(3 * deadline);
  const auto group = make_mpi_group(
      MPI_COMM_WORLD, static_cast<std::uint64_t>(std::chrono::nanoseconds(deadline).count()),
      os::system_clock());
  if (rank + 1 != size) {
    ASSERT_FALSE(group);
    EXPECT_EQ(group.error().code(), Code::peer_lost);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(MpiGroup, ARankThatStaysAwayIsLostToAllOthersAtTheirDeadline) {
  const auto deadline = milliseconds(300);
  const auto group =
      world_group(static_cast<std::uint64_t>(std::chrono::nanoseconds(deadline).count()));
  ASSERT_TRUE(group);
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  check_lost_peer(*group, deadline);
  // The late rank's reduce completes the others' once they call MPI again, as they do here; so
  // nothing is pending when MPI is finalized. What it wrote lies in buffers that were given up.
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace belay::ranks
