// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_worker.hpp"

#include "simulator/sim_clock.hpp"

#include <gtest/gtest.h>

namespace belay::simulator {
namespace {

/// Runs `body` as the one rank of a world.
void as_rank(std::uint64_t seed, const std::function<void(World&, Process&)>& body) {
  TaskThreads threads;
  World world(seed, 2, threads, false);
  world.start_run(1, {});
  world.scheduler().spawn("rank", [&] { body(world, world.process(0)); });
  world.scheduler().run();
}

TEST(SimWorker, JobsRunInOrderOneAfterTheOther) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    as_rank(seed, [](World& world, Process& process) {
      const auto worker = make_sim_worker(world, process);
      std::string order;
      for (const char name : {'a', 'b', 'c'})
        worker->submit([&, name] {
          order += name;
          world.scheduler().yield();
          order += name;
        });
      worker->wait_all();
      EXPECT_EQ(order, "aabbcc");
      EXPECT_FALSE(worker->pending());
    });
}

TEST(SimWorker, JobsInterleaveWithTheirProcess) {
  bool during = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    as_rank(seed, [&](World& world, Process& process) {
      const auto worker = make_sim_worker(world, process);
      int steps = 0;
      worker->submit([&] {
        for (; steps < 10; ++steps) world.scheduler().yield();
      });
      for (int i = 0; i < 10; ++i) {
        during = during || (steps > 0 && steps < 10);
        world.scheduler().yield();
      }
    });
  EXPECT_TRUE(during);
}

TEST(SimWorker, WaitOneReturnsWhenAJobHasEnded) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    as_rank(seed, [](World& world, Process& process) {
      const auto worker = make_sim_worker(world, process);
      int ended = 0;
      for (int i = 0; i < 3; ++i) worker->submit([&] { ++ended; });
      for (int least = 1; worker->pending(); ++least) {
        worker->wait_one();
        EXPECT_GE(ended, least);
      }
      EXPECT_EQ(ended, 3);
      worker->wait_one();
    });
}

TEST(SimWorker, TheDestructorWaitsForAllJobs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    as_rank(seed, [](World& world, Process& process) {
      int ended = 0;
      {
        const auto worker = make_sim_worker(world, process);
        for (int i = 0; i < 3; ++i)
          worker->submit([&] {
            world.scheduler().yield();
            ++ended;
          });
      }
      EXPECT_EQ(ended, 3);
    });
}

TEST(SimClock, SleepTakesVirtualTimeAndAKillEndsIt) {
  as_rank(1, [](World& world, Process& process) {
    SimClock clock(world, process);
    const std::uint64_t before = clock.now_ns();
    clock.sleep_ns(10'000'000'000);
    EXPECT_GE(clock.now_ns(), before + 10'000'000'000);
    world.kill(process);
    const std::uint64_t killed = clock.now_ns();
    clock.sleep_ns(10'000'000'000);
    EXPECT_LT(clock.now_ns(), killed + 1'000'000'000);
  });
}

}  // namespace
}  // namespace belay::simulator
