// SPDX-License-Identifier: Apache-2.0
// Whole sessions over real MPI, each test on all ranks together.
#include <belay/mpi.hpp>

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace belay {
namespace {

namespace fs = std::filesystem;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

class MpiSession : public testing::Test {
 protected:
  MpiSession() {
    std::array<char, 256> path{};
    if (world_rank() == 0) {
      const std::string pattern = testing::TempDir() + "belay-mpi-XXXXXX";
      std::copy(pattern.begin(), pattern.end(), path.begin());
      if (::mkdtemp(path.data()) == nullptr) std::abort();
    }
    MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    root_ = path.data();
  }
  ~MpiSession() override {
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (world_rank() == 0) fs::remove_all(root_, ignored);
  }
  Options options() const {
    Options options;
    options.store = root_ / "store";
    options.application = "mpi test";
    options.block = 1024;
    options.timeout = "20s";
    return options;
  }
  Session open_world() {
    auto opened = open(MPI_COMM_WORLD, options());
    EXPECT_TRUE(opened) << opened.error().message();
    return *std::move(opened);
  }
  /// Every rank has an error, and all have the same one.
  template <class T>
  static std::string expect_same_error(const Result<T>& result) {
    int failed = result ? 0 : 1;
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(failed, world_size());
    if (result || failed != world_size()) return "";
    std::array<char, 1024> first{};
    result.error().message().copy(first.data(), first.size() - 1);
    const std::string mine = first.data();
    MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    EXPECT_EQ(mine, first.data());
    return mine;
  }

  fs::path root_;
};

/// What rank and step decide: ranks have very different sizes, the last of several none at all.
std::vector<double> field_of(int rank, int step) {
  if (rank > 0 && rank == world_size() - 1) return {};
  std::vector<double> field(static_cast<std::size_t>(1000 * (rank + 1) * (rank + 1) + 77 * step));
  std::mt19937 random(static_cast<unsigned>(rank * 100 + step / 2));
  for (double& value : field) value = static_cast<double>(random());
  return field;
}

TEST_F(MpiSession, UnevenAndGrowingRegionsComeBackInTheSameProgram) {
  const int rank = world_rank();
  for (int start = 0; start < 6; start += 2) {
    Session session = open_world();
    int step = 0;
    std::vector<double> field;
    ASSERT_TRUE(session.protect("step", step));
    ASSERT_TRUE(session.protect("field", field));
    ASSERT_EQ(session.latest().has_value(), start > 0);
    if (session.latest()) {
      const auto restored = session.restore();
      ASSERT_TRUE(restored) << restored.error().message();
      EXPECT_EQ(step, start);
      EXPECT_EQ(field, field_of(rank, start));
    }
    while (step < start + 2) {
      ++step;
      field = field_of(rank, step);
      const auto taken = session.checkpoint();
      ASSERT_TRUE(taken) << taken.error().message();
    }
    const auto closed = session.close();
    ASSERT_TRUE(closed) << closed.error().message();
  }
}

TEST_F(MpiSession, RanksMayProtectDifferentRegions) {
  const std::string name = "only of rank " + std::to_string(world_rank());
  int value = world_rank() + 40;
  {
    Session session = open_world();
    ASSERT_TRUE(session.protect(name, value));
    ASSERT_TRUE(session.checkpoint());
    ASSERT_TRUE(session.close());
  }
  value = 0;
  Session session = open_world();
  ASSERT_TRUE(session.protect(name, value));
  ASSERT_TRUE(session.restore());
  EXPECT_EQ(value, world_rank() + 40);
  EXPECT_TRUE(session.close());
}

TEST_F(MpiSession, EachRankMayBeANodeOfItsOwn) {
  Options apart = options();
  apart.ranks_per_node = 1;
  std::vector<double> field = field_of(world_rank(), 1);
  for (int round = 0; round < 2; ++round) {
    auto session = open(MPI_COMM_WORLD, apart);
    ASSERT_TRUE(session) << session.error().message();
    if (round == 1) field.clear();
    ASSERT_TRUE(session->protect("field", field));
    const auto done = round == 1 ? session->restore() : session->checkpoint();
    ASSERT_TRUE(done) << done.error().message();
    ASSERT_TRUE(session->close());
  }
  EXPECT_EQ(field, field_of(world_rank(), 1));
  EXPECT_TRUE(fs::exists(root_ / "store" / ("node-" + std::to_string(world_rank()))));
}

TEST_F(MpiSession, OptionsThatDifferAreTheSameErrorOnAllRanks) {
  if (world_size() == 1) GTEST_SKIP() << "one rank cannot differ";
  Options mine = options();
  if (world_rank() == world_size() - 1) mine.block = 2048;
  const std::string message = expect_same_error(open(MPI_COMM_WORLD, mine));
  EXPECT_NE(message.find("block=1024"), std::string::npos) << message;
  EXPECT_NE(message.find("block=2048"), std::string::npos) << message;
}

TEST_F(MpiSession, AnInvalidOptionOfOneRankIsTheSameErrorOnAllRanks) {
  Options mine = options();
  if (world_rank() == world_size() - 1) mine.keep = "many";
  const std::string message = expect_same_error(open(MPI_COMM_WORLD, mine));
  EXPECT_NE(message.find("many"), std::string::npos) << message;
}

TEST_F(MpiSession, AStoreThatOneRankCannotWriteIsTheSameErrorOnAllRanks) {
  Options mine = options();
  const fs::path file = root_ / "file";
  if (world_rank() == 0) std::ofstream(file) << "in the way";
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == world_size() - 1) mine.store = file / "store";
  const std::string message = expect_same_error(open(MPI_COMM_WORLD, mine));
  EXPECT_NE(message.find(file.string()), std::string::npos) << message;
  Session session = open_world();
  EXPECT_TRUE(session.close()) << "nothing was left locked";
}

TEST_F(MpiSession, CommIsTheCommunicatorThatWasGiven) {
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  {
    auto session = open(mine, options());
    ASSERT_TRUE(session);
    int result = MPI_UNEQUAL;
    MPI_Comm_compare(comm(*session), mine, &result);
    EXPECT_EQ(result, MPI_IDENT);
    EXPECT_TRUE(session->close());
  }
  MPI_Comm_free(&mine);
}

TEST_F(MpiSession, CommOfASessionWithoutMpiIsNull) {
  Options alone = options();
  alone.store = root_ / ("alone-" + std::to_string(world_rank()));
  auto session = open(alone);
  ASSERT_TRUE(session);
  EXPECT_EQ(comm(*session), MPI_COMM_NULL);
  EXPECT_TRUE(session->close());
}

TEST_F(MpiSession, TheNullCommunicatorIsRefused) {
  const auto session = open(MPI_COMM_NULL, options());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), Code::invalid_argument) << session.error().message();
}

TEST_F(MpiSession, DifferentCollectiveCallsAreAClearErrorAndNoHang) {
  if (world_size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const auto start = std::chrono::steady_clock::now();
  Session session = open_world();
  int value = 1;
  ASSERT_TRUE(session.protect("value", value));
  const auto wrong = world_rank() == 0 ? session.wait() : session.checkpoint();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::invalid_argument);
  for (const char* call : {"wait()", "checkpoint()"})
    EXPECT_NE(wrong.error().message().find(call), std::string::npos) << wrong.error().message();
  EXPECT_TRUE(session.checkpoint()) << "and the session goes on";
  (void)session.wait();
  (void)session.close();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST_F(MpiSession, DueIsTheSameOnAllRanks) {
  Options timed = options();
  timed.interval = "1h";
  auto session = open(MPI_COMM_WORLD, timed);
  ASSERT_TRUE(session);
  EXPECT_TRUE(session->due());
  ASSERT_TRUE(session->checkpoint());
  EXPECT_FALSE(session->due());
  EXPECT_TRUE(session->close());
}

TEST_F(MpiSession, AnotherNumberOfRanksIsRefused) {
  if (world_size() == 1) GTEST_SKIP() << "there is no smaller job";
  {
    Session session = open_world();
    ASSERT_TRUE(session.checkpoint());
    ASSERT_TRUE(session.close());
  }
  MPI_Comm fewer = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() == 0 ? MPI_UNDEFINED : 0, 0, &fewer);
  if (fewer == MPI_COMM_NULL) return;
  const auto refused = open(fewer, options());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument) << refused.error().message();
  MPI_Comm_free(&fewer);
}

TEST_F(MpiSession, PartsOfAJobMayHaveStoresOfTheirOwn) {
  const int half = world_rank() % 2;
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, half, 0, &mine);
  Options own = options();
  own.store = root_ / ("half-" + std::to_string(half));
  Session world = open_world();
  auto part = open(mine, own);
  ASSERT_TRUE(part) << part.error().message();
  int of_world = 1;
  int of_part = 2;
  ASSERT_TRUE(world.protect("value", of_world));
  ASSERT_TRUE(part->protect("value", of_part));
  ASSERT_TRUE(part->checkpoint());
  ASSERT_TRUE(world.checkpoint());
  of_world = of_part = 0;
  ASSERT_TRUE(world.restore());
  ASSERT_TRUE(part->restore());
  EXPECT_EQ(of_world, 1);
  EXPECT_EQ(of_part, 2);
  EXPECT_TRUE(part->close());
  EXPECT_TRUE(world.close());
  MPI_Comm_free(&mine);
}

}  // namespace
}  // namespace belay
