// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_tracker.hpp"

#include <gtest/gtest.h>

namespace belay::simulator {
namespace {

using Bits = std::vector<bool>;

TEST(SimTracker, FirstLookCannotTellAndLaterOnesAreExact) {
  WriteLog log;
  SimTracker tracker(log);
  Bits dirty(4);
  EXPECT_FALSE(tracker.collect("a", {}, 512, dirty));
  EXPECT_TRUE(tracker.collect("a", {}, 512, dirty));
  EXPECT_EQ(dirty, (Bits{false, false, false, false}));
  log.wrote("a", 511, 513);
  log.wrote("a", 1536, 1537);
  EXPECT_TRUE(tracker.collect("a", {}, 512, dirty));
  EXPECT_EQ(dirty, (Bits{true, true, false, true}));
}

TEST(SimTracker, BitsThatAreSetStaySetAndALookArmsAnew) {
  WriteLog log;
  SimTracker tracker(log);
  Bits dirty(2);
  EXPECT_FALSE(tracker.collect("a", {}, 512, dirty));
  log.wrote("a", 0, 1);
  dirty[1] = true;
  EXPECT_TRUE(tracker.collect("a", {}, 512, dirty));
  EXPECT_EQ(dirty, (Bits{true, true}));
  dirty.assign(2, false);
  EXPECT_TRUE(tracker.collect("a", {}, 512, dirty));
  EXPECT_EQ(dirty, (Bits{false, false}));
}

TEST(SimTracker, AForgottenRegionIsUnknownAgain) {
  WriteLog log;
  SimTracker tracker(log);
  Bits dirty(1);
  EXPECT_FALSE(tracker.collect("a", {}, 512, dirty));
  EXPECT_FALSE(tracker.collect("b", {}, 512, dirty));
  log.forget("a");
  EXPECT_FALSE(tracker.collect("a", {}, 512, dirty));
  EXPECT_TRUE(tracker.collect("b", {}, 512, dirty));
}

}  // namespace
}  // namespace belay::simulator
