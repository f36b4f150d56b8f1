// SPDX-License-Identifier: Apache-2.0
#include "store/carry.hpp"

#include <gtest/gtest.h>

namespace belay::store {
namespace {

SegmentRef segment(std::uint64_t payload_bytes) { return {{{1, 1}, 0}, payload_bytes + 8192}; }

TEST(Carry, LeavesAHealthyStoreAlone) {
  EXPECT_EQ(plan_carry({segment(1000), segment(100)}, {900, 100}, {64, 1000}), (CarryPlan{0, 0}));
  EXPECT_TRUE(plan_carry({}, {}, {64, 0}).empty());
}

TEST(Carry, EmptiesTheSmallestWhenThereAreTooMany) {
  const std::vector<SegmentRef> segments{segment(1000), segment(100), segment(100)};
  EXPECT_EQ(plan_carry(segments, {1000, 90, 80}, {3, 1170}), (CarryPlan{0, 0, kCarryAll}));
  EXPECT_EQ(plan_carry(segments, {1000, 90, 80}, {2, 1170}), (CarryPlan{0, kCarryAll, kCarryAll}));
}

TEST(Carry, BoundsWhatDeadBytesMakeItWrite) {
  // 1600 stored, 600 alive: the segment with the smallest live share goes first, 1/16 at a time.
  const std::vector<SegmentRef> segments{segment(1000), segment(600)};
  EXPECT_EQ(plan_carry(segments, {100, 500}, {64, 800}), (CarryPlan{50, 0}));
  EXPECT_EQ(plan_carry(segments, {20, 580}, {64, 800}), (CarryPlan{20, 30}));
}

TEST(Carry, LeavesSmallStoresAlone) {
  EXPECT_EQ(plan_carry({{{{1, 1}, 0}, 4096}}, {512}, {64, 512}), (CarryPlan{0}));
}

TEST(Carry, SettlesWithinTheBoundsOverManyVersions) {
  // A model of scattered change: each version rewrites 3 % of every segment's live bytes.
  constexpr std::uint64_t kImage = 1'000'000;
  std::vector<SegmentRef> segments{segment(kImage)};
  std::vector<std::uint64_t> live{kImage};
  std::uint64_t written = 0;
  constexpr int kVersions = 300;
  for (int version = 0; version < kVersions; ++version) {
    const CarryPlan plan = plan_carry(segments, live, {64, kImage});
    std::uint64_t fresh = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const std::uint64_t changed = live[i] * 3 / 100;
      const std::uint64_t moved = changed + std::min(live[i] - changed, plan[i]);
      live[i] -= moved;
      fresh += moved;
    }
    for (std::size_t i = live.size(); i-- > 0;)
      if (live[i] == 0) {
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
        segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
      }
    segments.push_back(segment(fresh));
    live.push_back(fresh);
    written += fresh;
    ASSERT_LE(segments.size(), 64u);
    std::uint64_t stored = 0;
    for (const SegmentRef& s : segments) stored += s.file_bytes - 8192;
    ASSERT_LE(stored, kImage * 3);
  }
  EXPECT_LT(static_cast<double>(written) / (kVersions * 0.03 * kImage), 1.5);
}

}  // namespace
}  // namespace belay::store
