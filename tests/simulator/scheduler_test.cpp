// SPDX-License-Identifier: Apache-2.0
#include "simulator/scheduler.hpp"

#include <gtest/gtest.h>

namespace belay::simulator {
namespace {

/// What three tasks that yield between their steps write down, for one seed.
std::string interleaving(std::uint64_t seed, TaskThreads& threads) {
  Scheduler scheduler(seed, 2, threads);
  std::string order;
  for (const char name : {'a', 'b', 'c'})
    scheduler.spawn(std::string(1, name), [&order, &scheduler, name] {
      for (int i = 0; i < 10; ++i) {
        order += name;
        scheduler.yield();
      }
    });
  scheduler.run();
  return order;
}

TEST(Scheduler, TheSeedDecidesTheInterleaving) {
  TaskThreads threads;
  const std::string first = interleaving(1, threads);
  EXPECT_EQ(first.size(), 30u);
  EXPECT_EQ(first, interleaving(1, threads));
  EXPECT_NE(first, interleaving(2, threads));
}

TEST(Scheduler, OnlyOneTaskRunsAtATime) {
  TaskThreads threads;
  Scheduler scheduler(3, 2, threads);
  int running = 0;
  int worst = 0;
  for (int i = 0; i < 8; ++i)
    scheduler.spawn("t", [&] {
      for (int step = 0; step < 1000; ++step) {
        worst = std::max(worst, ++running);
        --running;
        scheduler.yield();
      }
    });
  scheduler.run();
  EXPECT_EQ(worst, 1);
  EXPECT_GT(scheduler.switches(), 1000u);
}

TEST(Scheduler, AWaitingTaskGoesOnWhenItsConditionHolds) {
  TaskThreads threads;
  Scheduler scheduler(4, 2, threads);
  int value = 0;
  bool seen = false;
  scheduler.spawn("waits", [&] { seen = scheduler.wait_until([&] { return value == 100; }); });
  scheduler.spawn("counts", [&] {
    for (; value < 100; ++value) scheduler.yield();
  });
  scheduler.run();
  EXPECT_TRUE(seen);
  EXPECT_EQ(scheduler.now_ns(), 0u);
}

TEST(Scheduler, TimeJumpsToTheNextDeadlineWhenAllWait) {
  TaskThreads threads;
  Scheduler scheduler(5, 2, threads);
  std::string order;
  const auto sleep = [&](char name, std::uint64_t ns) {
    EXPECT_FALSE(scheduler.wait_until([] { return false; }, ns));
    EXPECT_EQ(scheduler.now_ns(), ns);
    order += name;
  };
  scheduler.spawn("b", [&] { sleep('b', 2'000); });
  scheduler.spawn("a", [&] { sleep('a', 1'000); });
  scheduler.spawn("c", [&] { sleep('c', 3'000'000'000); });
  scheduler.run();
  EXPECT_EQ(order, "abc");
}

TEST(Scheduler, ATaskCanSpawnTasksAndThreadsAreUsedAgain) {
  TaskThreads threads;
  Scheduler scheduler(6, 2, threads);
  int ended = 0;
  scheduler.spawn("parent", [&] {
    for (int i = 1; i <= 50; ++i) {
      scheduler.spawn("child", [&] { ++ended; });
      scheduler.wait_until([&, i] { return ended == i; });
    }
  });
  scheduler.run();
  EXPECT_EQ(ended, 50);
}

TEST(Scheduler, TasksThatWaitForEachOtherAreAHang) {
  TaskThreads threads;
  Scheduler scheduler(7, 2, threads);
  bool released = false;
  std::string why;
  scheduler.on_hang(1000, [&](const std::string& reason) {
    why = reason;
    released = true;
  });
  scheduler.spawn("one", [&] { scheduler.wait_until([&] { return released; }); });
  scheduler.spawn("two", [&] { scheduler.wait_until([&] { return released; }); });
  scheduler.run();
  EXPECT_EQ(why, "every task waits for another: one two");
}

TEST(Scheduler, ATaskThatNeverEndsIsAHang) {
  TaskThreads threads;
  Scheduler scheduler(8, 2, threads);
  bool released = false;
  scheduler.on_hang(1000, [&](const std::string&) { released = true; });
  scheduler.spawn("spins", [&] {
    while (!released) scheduler.yield();
  });
  scheduler.run();
  EXPECT_TRUE(released);
}

}  // namespace
}  // namespace belay::simulator
