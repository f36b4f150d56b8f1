// SPDX-License-Identifier: Apache-2.0
#include "session/schedule.hpp"

#include "session/session_test.hpp"

namespace belay::session {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Schedule, CallsAreCountedAndTheFirstIsDue) {
  FakeClock clock;
  Schedule schedule({.kind = Interval::Kind::calls, .calls = 3}, 1, clock);
  EXPECT_TRUE(schedule.same_everywhere());
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(schedule.due());
    EXPECT_FALSE(schedule.due());
    EXPECT_FALSE(schedule.due());
  }
}

TEST(Schedule, ATimeIsCountedFromTheLastCapture) {
  FakeClock clock;
  Schedule schedule({.kind = Interval::Kind::time, .time_ns = 10 * kSecond}, 1, clock);
  EXPECT_FALSE(schedule.same_everywhere());
  EXPECT_TRUE(schedule.due());
  schedule.captured(kSecond);
  EXPECT_FALSE(schedule.due());
  clock.advance(9 * kSecond);
  EXPECT_FALSE(schedule.due());
  clock.advance(kSecond);
  EXPECT_TRUE(schedule.due());
  EXPECT_TRUE(schedule.due()) << "until one was captured";
}

TEST(Schedule, AutoFollowsYoungsFormula) {
  FakeClock clock;
  Schedule schedule({}, 200 * kSecond, clock);
  EXPECT_TRUE(schedule.due());
  schedule.captured(kSecond);
  EXPECT_EQ(schedule.interval_ns(), 20 * kSecond) << "sqrt(2 x 1 s x 200 s)";
  clock.advance(19 * kSecond);
  EXPECT_FALSE(schedule.due());
  clock.advance(kSecond);
  EXPECT_TRUE(schedule.due());
}

TEST(Schedule, AutoForgetsTheCostOfTheFirstVersion) {
  FakeClock clock;
  Schedule schedule({}, 200 * kSecond, clock);
  schedule.captured(100 * kSecond);
  for (int i = 0; i < 40; ++i) schedule.captured(kSecond);
  EXPECT_NEAR(static_cast<double>(schedule.interval_ns()), 20e9, 1e8);
}

class Due : public SessionTest {};

TEST_F(Due, FollowsTheIntervalOfTheOptions) {
  Options timed = options();
  timed.interval = "10m";
  auto session = open(timed);
  int value = 0;
  must(session.protect("value", value));
  EXPECT_TRUE(session.due());
  take(session);
  EXPECT_FALSE(session.due());
  clock_.advance(600 * kSecond);
  EXPECT_TRUE(session.due());
}

TEST_F(Due, FollowsTheCostOfVersionsWithAuto) {
  Options automatic = options();
  automatic.mtbf = "1h";
  auto session = open(automatic);
  int value = 0;
  must(session.protect("value", value));
  EXPECT_TRUE(session.due());
  take(session);
  EXPECT_FALSE(session.due());
  clock_.advance(3600 * kSecond);
  EXPECT_TRUE(session.due());
}

}  // namespace
}  // namespace belay::session
