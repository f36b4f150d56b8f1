// SPDX-License-Identifier: Apache-2.0
// dump() and load() over real MPI and real files, through C++ and C.
#include <belay/belay.h>
#include <belay/mpi.h>
#include <belay/mpi.hpp>

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
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

using Buffer = std::vector<std::byte>;

/// Larger than a window, with bytes that no other rank has and some that all have.
std::vector<Buffer> buffers_of(int rank) {
  const auto noise = [](std::size_t bytes, unsigned seed) {
    std::mt19937_64 random(seed);
    Buffer buffer(bytes);
    std::generate(buffer.begin(), buffer.end(), [&] { return static_cast<std::byte>(random()); });
    return buffer;
  };
  const auto size = static_cast<std::size_t>(rank + 1);
  return {noise(700'001 * size, static_cast<unsigned>(rank)), Buffer{}, noise(300'000, 1000),
          noise(5, static_cast<unsigned>(rank) + 50)};
}

class MpiDump : public testing::Test {
 protected:
  MpiDump() {
    std::array<char, 256> path{};
    if (world_rank() == 0) {
      const std::string pattern = testing::TempDir() + "belay-mpi-XXXXXX";
      std::copy(pattern.begin(), pattern.end(), path.begin());
      if (::mkdtemp(path.data()) == nullptr) std::abort();
    }
    MPI_Bcast(path.data(), static_cast<int>(path.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
    root_ = path.data();
  }
  ~MpiDump() override {
    MPI_Barrier(MPI_COMM_WORLD);
    std::error_code ignored;
    if (world_rank() == 0) fs::remove_all(root_, ignored);
  }
  Options options() const {
    Options options;
    options.store = root_ / "store";
    options.application = "mpi test";
    options.ranks_per_node = 1;
    options.timeout = "20s";
    return options;
  }
  void lose_node(int node) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank() == 0) fs::remove_all(root_ / "store" / ("node-" + std::to_string(node)));
    MPI_Barrier(MPI_COMM_WORLD);
  }

  fs::path root_;
};

TEST_F(MpiDump, ComesBackBitForBitThoughANodeWasLost) {
  const int copies = std::min(world_size(), 2);
  Version version = 0;
  {
    auto session = open(MPI_COMM_WORLD, options());
    ASSERT_TRUE(session) << session.error().message();
    const auto buffers = buffers_of(world_rank());
    const std::vector<std::span<const std::byte>> spans(buffers.begin(), buffers.end());
    const auto dumped = session->dump(spans, copies);
    ASSERT_TRUE(dumped) << dumped.error().message();
    version = *dumped;
    ASSERT_TRUE(session->close());
  }
  if (copies > 1) lose_node(1);
  auto session = open(MPI_COMM_WORLD, options());
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_FALSE(session->latest());
  const auto expected = buffers_of(world_rank());
  std::vector<Buffer> found;
  for (const Buffer& buffer : expected) found.emplace_back(buffer.size());
  const std::vector<std::span<std::byte>> room(found.begin(), found.end());
  const auto loaded = session->load(version, room);
  ASSERT_TRUE(loaded) << loaded.error().message();
  EXPECT_TRUE(found == expected);
  ASSERT_TRUE(session->close());
}

TEST_F(MpiDump, IsTheSameThroughC) {
  const std::string store = root_ / "store";
  belay_options* options = belay_options_new();
  ASSERT_NE(options, nullptr);
  ASSERT_EQ(belay_options_set(options, "store", store.c_str()), BELAY_OK);
  ASSERT_EQ(belay_options_set(options, "ranks_per_node", "1"), BELAY_OK);
  belay_session* session = nullptr;
  ASSERT_EQ(belay_open_mpi(&session, MPI_COMM_WORLD, options), BELAY_OK);
  const auto buffers = buffers_of(world_rank());
  std::vector<const void*> addresses;
  std::vector<std::size_t> sizes;
  for (const Buffer& buffer : buffers) {
    addresses.push_back(buffer.data());
    sizes.push_back(buffer.size());
  }
  belay_version version = 0;
  ASSERT_EQ(belay_dump(session, addresses.data(), sizes.data(), sizes.size(),
                       std::min(world_size(), 3), &version),
            BELAY_OK)
      << belay_message(session);
  std::vector<Buffer> found;
  std::vector<void*> room;
  for (const std::size_t bytes : sizes) found.emplace_back(bytes);
  for (Buffer& buffer : found) room.push_back(buffer.data());
  ASSERT_EQ(belay_load(session, version, room.data(), sizes.data(), sizes.size()), BELAY_OK)
      << belay_message(session);
  EXPECT_TRUE(found == buffers);
  EXPECT_EQ(
      belay_dump(session, addresses.data(), sizes.data(), sizes.size(), world_size() + 1, &version),
      BELAY_INVALID_ARGUMENT);
  EXPECT_EQ(belay_close(session), BELAY_INVALID_ARGUMENT) << "what may have been ignored";
  belay_free(session);
  belay_options_free(options);
}

}  // namespace
}  // namespace belay
