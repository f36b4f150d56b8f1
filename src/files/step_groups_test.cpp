// SPDX-License-Identifier: Apache-2.0
#include "files/step_groups.hpp"
#include "files/step_pattern.hpp"

#include <gtest/gtest.h>

namespace belay::files {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Group group_of(std::size_t files, std::uint64_t quiet_ns = 0, std::int64_t time_ns = 1) {
  Group group;
  for (std::size_t i = 0; i < files; ++i) {
    FileStamp stamp;
    stamp.bytes = 10;
    stamp.mtime_ns = time_ns;
    group.files.push_back({"f" + std::to_string(i), "", stamp, quiet_ns, true});
  }
  return group;
}

Contents packed(std::uint64_t step, const Group& group) {
  Contents contents;
  contents.step = step;
  for (const WatchedFile& file : group.files) {
    PackedFile entry;
    entry.path = file.path;
    entry.bytes = file.stamp.bytes;
    entry.mtime_ns = file.stamp.mtime_ns;
    contents.files.push_back(entry);
  }
  return contents;
}

TEST(NextStep, TheLowestCompleteStepComesFirst) {
  const Groups groups = {{Step(20), group_of(2)}, {Step(10), group_of(2)}};
  const auto next = next_step(groups, {}, {.files = 2});
  ASSERT_TRUE(next.pack);
  EXPECT_EQ(*next.pack, Step(10));
}

TEST(NextStep, AnUnfinishedFileHoldsItsStepAndAllLaterOnes) {
  Groups groups = {{Step(10), group_of(2)}, {Step(20), group_of(2)}};
  groups[Step(10)].files[1].finished = false;
  EXPECT_FALSE(next_step(groups, {}, {.files = 2}).pack);
}

TEST(NextStep, AStepWithTooFewFilesIsGivenUpOnlyWhenOvertakenAndQuiet) {
  const GroupRules rules{.files = 2, .settle_ns = kSecond};
  Groups groups = {{Step(10), group_of(1, 2 * kSecond)}, {Step(20), group_of(1)}};
  EXPECT_TRUE(next_step(groups, {}, rules).given_up.empty());
  groups[Step(20)] = group_of(2);
  const auto next = next_step(groups, {}, rules);
  EXPECT_EQ(next.given_up, std::vector<Step>{Step(10)});
  ASSERT_TRUE(next.pack);
  EXPECT_EQ(*next.pack, Step(20));
  groups[Step(10)] = group_of(1, kSecond / 2);
  EXPECT_FALSE(next_step(groups, {}, rules).pack);
}

TEST(NextStep, WithoutACountTheStepBeforeTellsIt) {
  PackedSteps steps;
  steps.add(packed(10, group_of(3)));
  const GroupRules rules{.settle_ns = 100 * kSecond};
  EXPECT_FALSE(next_step({{Step(20), group_of(2)}}, steps, rules).pack);
  EXPECT_TRUE(next_step({{Step(20), group_of(3)}}, steps, rules).pack);
}

TEST(NextStep, TheFirstStepWaitsForANewerOneOrForALongQuiet) {
  const GroupRules rules{.settle_ns = kSecond};
  EXPECT_FALSE(next_step({{Step(1), group_of(2, 2 * kSecond)}}, {}, rules).pack);
  EXPECT_TRUE(next_step({{Step(1), group_of(2, 6 * kSecond)}}, {}, rules).pack);
  EXPECT_TRUE(
      next_step({{Step(1), group_of(2, 2 * kSecond)}, {Step(2), group_of(1)}}, {}, rules).pack);
}

TEST(NextStep, WhatIsPackedIsNotPackedAgainUnlessItChanges) {
  PackedSteps steps;
  steps.add(packed(10, group_of(2, 0, 5)));
  const GroupRules rules{.files = 2};
  EXPECT_FALSE(next_step({{Step(10), group_of(2, 0, 5)}}, steps, rules).pack);
  EXPECT_TRUE(next_step({{Step(10), group_of(2, 0, 6)}}, steps, rules).pack);
}

TEST(NextStep, OlderStepsCountOnlyIfTheyWereWrittenAgain) {
  PackedSteps steps;
  steps.add(packed(30, group_of(2, 0, 5)));
  const GroupRules rules{.files = 2};
  EXPECT_FALSE(next_step({{Step(10), group_of(2, 0, 4)}}, steps, rules).pack);
  EXPECT_TRUE(next_step({{Step(10), group_of(2, 0, 6)}}, steps, rules).pack);
}

TEST(NextStep, AMarkIsAllThatCountsWhereThereAreMarks) {
  Groups groups = {{Step(1), group_of(2, 1000 * kSecond)}};
  const GroupRules rules{.by_marker = true};
  EXPECT_FALSE(next_step(groups, {}, rules).pack);
  groups[Step(1)].marked = true;
  EXPECT_TRUE(next_step(groups, {}, rules).pack);
}

TEST(StepPattern, NumbersAreFoundAndOtherNamesAreNot) {
  const auto pattern = StepPattern::parse("out{step}/restart.{step}.{rank}*.h5");
  ASSERT_TRUE(pattern);
  const auto match = pattern->match("out0012/restart.0012.7-x.h5");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->step, 12u);
  EXPECT_EQ(match->rank, 7u);
  EXPECT_EQ(match->alias, "out{step}/restart.{step}.7-x.h5");
  for (const char* path : {"out12/restart.13.7.h5", "out12/restart.12..h5", "restart.12.7.h5",
                           "out12/restart.12.7/x.h5", "out12/restartx12.7.h5"})
    EXPECT_FALSE(pattern->match(path)) << path;
  EXPECT_FALSE(StepPattern::parse("x{time}"));
}

}  // namespace
}  // namespace belay::files
