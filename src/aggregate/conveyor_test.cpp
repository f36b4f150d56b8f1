// SPDX-License-Identifier: Apache-2.0
#include "aggregate/conveyor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

namespace belay::aggregate {
namespace {

Parcel parcel(std::uint32_t number) { return {std::to_string(number), {}, Bytes(100), number}; }

class ConveyorTest : public testing::TestWithParam<unsigned> {};

TEST_P(ConveyorTest, WritesInOrderWithNeverMoreInMemoryThanAllowed) {
  constexpr std::size_t kMost = 4;
  std::atomic<std::size_t> inside = 0;
  std::size_t most_inside = 0;
  std::vector<std::uint32_t> written;
  Conveyor conveyor(
      GetParam(), kMost,
      [&](const store::RawExtent& raw, codec::Workspace&, Bytes) {
        if (raw.blocks % 3 == 0) std::this_thread::yield();
        return store::EncodedExtent{};
      },
      [&](const store::RawExtent& raw, const store::EncodedExtent&) -> Result<void> {
        written.push_back(raw.blocks);
        --inside;
        return {};
      });
  for (std::uint32_t i = 0; i < 200; ++i) {
    most_inside = std::max(most_inside, ++inside);
    ASSERT_TRUE(conveyor.put(parcel(i)));
  }
  ASSERT_TRUE(conveyor.finish());
  ASSERT_EQ(written.size(), 200u);
  for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(written[i], i);
  EXPECT_LE(most_inside, kMost);
}

TEST_P(ConveyorTest, AnErrorOfWritingEndsIt) {
  Conveyor conveyor(
      GetParam(), 3,
      [](const store::RawExtent&, codec::Workspace&, Bytes) { return store::EncodedExtent{}; },
      [](const store::RawExtent& raw, const store::EncodedExtent&) -> Result<void> {
        if (raw.blocks == 5) return Unexpected(Error(Code::no_space, "full"));
        return {};
      });
  Result<void> done;
  for (std::uint32_t i = 0; i < 100 && done; ++i) done = conveyor.put(parcel(i));
  if (done) done = conveyor.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::no_space);
}

TEST_P(ConveyorTest, WhatIsNotFinishedIsDropped) {
  Conveyor conveyor(
      GetParam(), 3,
      [](const store::RawExtent&, codec::Workspace&, Bytes) { return store::EncodedExtent{}; },
      [](const store::RawExtent&, const store::EncodedExtent&) -> Result<void> { return {}; });
  EXPECT_TRUE(conveyor.put(parcel(1)));
}

INSTANTIATE_TEST_SUITE_P(Threads, ConveyorTest, testing::Values(0u, 1u, 3u));

TEST(Conveyor, LackOfMemoryWhileEncodingIsAnError) {
  Conveyor conveyor(
      2, 3,
      [](const store::RawExtent& raw, codec::Workspace&, Bytes) -> store::EncodedExtent {
        if (raw.blocks == 4) throw std::bad_alloc();
        return {};
      },
      [](const store::RawExtent&, const store::EncodedExtent&) -> Result<void> { return {}; });
  Result<void> done;
  for (std::uint32_t i = 0; i < 100 && done; ++i) done = conveyor.put(parcel(i));
  if (done) done = conveyor.finish();
  EXPECT_FALSE(done);
}

}  // namespace
}  // namespace belay::aggregate
