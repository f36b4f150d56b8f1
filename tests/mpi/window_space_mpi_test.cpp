// SPDX-License-Identifier: Apache-2.0
// Windows on a host with 48 MiB of shared memory: run by in_small_shared_memory.sh.
#include "comm/mpi_group.hpp"
#include "conformance/window_checks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace belay::ranks {
namespace {

std::unique_ptr<Group> world_group(Rank most_neighbours) {
  auto group = make_mpi_group(MPI_COMM_WORLD, 20'000'000'000, os::system_clock(), most_neighbours);
  EXPECT_TRUE(group) << group.error().message();
  return group ? *std::move(group) : nullptr;
}

TEST(WindowSpace, TooLittleSharedMemoryIsAnErrorOnAllRanksThatSaysSo) {
  const auto group = world_group(0);
  ASSERT_TRUE(group);
  for (const bool all : {true, false}) {
    const auto window = group->open_window(all || group->rank() == 0 ? 64u << 20 : 10);
    ASSERT_FALSE(window);
    EXPECT_EQ(window.error().code(), Code::no_space);
    EXPECT_NE(window.error().message().find("/dev/shm"), std::string::npos)
        << window.error().message();
  }
  check_odd_puts(*group);
  EXPECT_TRUE(group->close());
}

TEST(WindowSpace, WhatOneWindowTookTheNextDoesNotGet) {
  const auto group = world_group(0);
  ASSERT_TRUE(group);
  const std::uint64_t bytes = (30u << 20) / group->size();
  const auto first = opened(*group, bytes);
  ASSERT_TRUE(first);
  EXPECT_EQ(group->open_window(bytes).error().code(), Code::no_space);
  close_window(*first);
  const auto second = opened(*group, bytes);
  ASSERT_TRUE(second);
  close_window(*second);
  EXPECT_TRUE(group->close());
}

TEST(WindowSpace, RanksThatShareNoMemoryNeedNone) {
  const auto group = world_group(1);
  ASSERT_TRUE(group);
  const auto window = opened(*group, 64u << 20);
  ASSERT_TRUE(window);
  close_window(*window);
  EXPECT_TRUE(group->close());
}

}  // namespace
}  // namespace belay::ranks
