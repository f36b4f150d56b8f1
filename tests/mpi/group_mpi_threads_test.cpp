// SPDX-License-Identifier: Apache-2.0
// Duplicates of groups, in a program that lets several threads call MPI.
#include "comm/mpi_group.hpp"
#include "conformance/exchange_checks.hpp"
#include "conformance/window_checks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace belay::ranks {
namespace {

constexpr std::uint64_t kPatience_ns = 20'000'000'000;

TEST(MpiGroupThreads, ADuplicateServesAnotherThread) {
  auto group = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_TRUE(group);
  check_duplicate(**group);
}

TEST(MpiGroupThreads, TwoThreadsPutIntoWindowsAtTheSameTime) {
  auto group = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_TRUE(group);
  auto second = (*group)->duplicate();
  ASSERT_TRUE(second) << second.error().message();
  std::thread other([&] { check_many_rounds(**second); });
  check_odd_puts(**group);
  check_many_rounds(**group);
  other.join();
  EXPECT_TRUE((*second)->close());
  EXPECT_TRUE((*group)->close());
}

}  // namespace
}  // namespace belay::ranks

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const int mine = provided == MPI_THREAD_MULTIPLE ? RUN_ALL_TESTS() : 0;
  int worst = 0;
  MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return worst;
}
