// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

namespace belay::os {
namespace {

TEST(SystemClock, SleepLastsAtLeastAsLongAsAsked) {
  const std::uint64_t before = system_clock().now_ns();
  system_clock().sleep_ns(3'000'000);
  EXPECT_GE(system_clock().now_ns() - before, 3'000'000u);
}

TEST(SystemClock, WallTimeCountsFrom1970) {
  const auto expected = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  EXPECT_NEAR(static_cast<double>(system_clock().wall_ns()), static_cast<double>(expected), 60e9);
}

TEST(SystemRandom, DrawsDoNotRepeatAndUseAllBits) {
  std::set<std::uint64_t> seen;
  std::uint64_t ones = 0;
  std::uint64_t zeros = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = system_random().next();
    seen.insert(value);
    ones |= value;
    zeros |= ~value;
  }
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(ones & zeros, ~std::uint64_t{0});
}

}  // namespace
}  // namespace belay::os
