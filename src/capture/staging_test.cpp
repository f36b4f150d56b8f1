// SPDX-License-Identifier: Apache-2.0
#include "capture/staging.hpp"

#include "os/files.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace belay::capture {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// All buffers that can be had at once.
std::vector<StagingBuffer*> drain(Staging& staging) {
  std::vector<StagingBuffer*> buffers;
  while (true) {
    auto buffer = staging.try_acquire();
    EXPECT_TRUE(buffer);
    if (!buffer || *buffer == nullptr) return buffers;
    buffers.push_back(*buffer);
  }
}

TEST(Staging, GivesDistinctEmptyBuffersUpToItsLimit) {
  Staging staging(4 * kMiB, 16 << 10);
  const auto buffers = drain(staging);
  EXPECT_EQ(std::set<StagingBuffer*>(buffers.begin(), buffers.end()).size(), buffers.size());
  EXPECT_GE(buffers.size(), 2u);
  std::size_t bytes = 0;
  for (const StagingBuffer* buffer : buffers) {
    EXPECT_EQ(buffer->used, 0u);
    EXPECT_TRUE(buffer->blocks.empty());
    EXPECT_EQ(buffer->memory.size(), staging.buffer_bytes());
    bytes += buffer->memory.size();
  }
  EXPECT_LE(bytes, 4 * kMiB);
  EXPECT_GE(staging.allocated_bytes(), bytes);
}

TEST(Staging, AReleasedBufferComesBackEmpty) {
  Staging staging(kMiB, 512);
  auto buffers = drain(staging);
  buffers[0]->used = 100;
  buffers[0]->blocks.push_back({});
  staging.release(buffers[0]);
  const auto again = staging.try_acquire();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, buffers[0]);
  EXPECT_EQ((*again)->used, 0u);
  EXPECT_TRUE((*again)->blocks.empty());
}

TEST(Staging, TwoBuffersTakeAnyBlockWhateverTheLimit) {
  for (const std::uint32_t block : {512u, 16384u, 1u << 20, 4u << 20}) {
    Staging staging(kMiB, block);
    EXPECT_GE(drain(staging).size(), 2u) << block;
    EXPECT_GE(staging.buffer_bytes(), block + 2 * os::kDirectAlignment) << block;
    EXPECT_EQ(staging.buffer_bytes() % os::kDirectAlignment, 0u) << block;
  }
}

TEST(Staging, MayGrowButNeverShrinks) {
  Staging staging(64 * kMiB, 16 << 10);
  const std::size_t before = drain(staging).size();
  staging.grow(kMiB);
  EXPECT_TRUE(drain(staging).empty());
  staging.grow(128 * kMiB);
  EXPECT_EQ(drain(staging).size(), before);
}

TEST(Staging, AllocatesNothingBeforeItIsAsked) {
  const Staging staging(std::size_t{1} << 40, 16 << 10);
  EXPECT_EQ(staging.allocated_bytes(), 0u);
}

TEST(Staging, MayBeUsedByTwoThreads) {
  Staging staging(kMiB, 512);
  const auto churn = [&] {
    for (int i = 0; i < 1000; ++i) {
      auto buffer = staging.try_acquire();
      ASSERT_TRUE(buffer);
      if (*buffer == nullptr) continue;
      EXPECT_EQ((*buffer)->used, 0u);
      (*buffer)->used = 1;
      staging.release(*buffer);
    }
  };
  std::thread other(churn);
  churn();
  other.join();
}

}  // namespace
}  // namespace belay::capture
