// SPDX-License-Identifier: Apache-2.0
// Groups before MPI_Init and after MPI_Finalize: the tests that cannot run between the two.
#include "comm/mpi_group.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

namespace belay::ranks {
namespace {

constexpr std::uint64_t kPatience_ns = 20'000'000'000;

void expect_refused(const Error& error, const char* advice) {
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_NE(error.message().find(advice), std::string::npos) << error.message();
}

TEST(MpiGroupLifetime, RefusesToWorkBeforeInitAndAfterFinalize) {
  const auto early = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_FALSE(early);
  expect_refused(early.error(), "call MPI_Init first");

  MPI_Init(nullptr, nullptr);
  const auto group = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_TRUE(group) << group.error().message();
  MPI_Finalize();

  expect_refused((*group)->gather({}).error(), "close() the session before MPI_Finalize");
  expect_refused((*group)->close().error(), "close() the session before MPI_Finalize");
  const auto late = make_mpi_group(MPI_COMM_WORLD, kPatience_ns, os::system_clock());
  ASSERT_FALSE(late);
  expect_refused(late.error(), "MPI is finalized");
}

}  // namespace
}  // namespace belay::ranks

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
