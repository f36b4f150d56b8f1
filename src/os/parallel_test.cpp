// SPDX-License-Identifier: Apache-2.0
#include "os/parallel.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <chrono>
#include <mutex>
#include <numeric>
#include <set>

namespace belay::os {
namespace {

std::uint64_t cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

TEST(Parallel, EveryPieceRunsExactlyOnceAtAnyNumberOfThreads) {
  for (const unsigned threads : {0u, 1u, 2u, 3u, 8u}) {
    Parallel parallel(threads);
    EXPECT_EQ(parallel.threads(), std::max(threads, 1u));
    for (const std::size_t pieces : {0u, 1u, 2u, 3u, 1000u}) {
      std::vector<int> counts(pieces, 0);  // plain ints: the caller must see all writes
      parallel.run(pieces, [&](std::size_t piece) { ++counts[piece]; });
      EXPECT_EQ(counts, std::vector<int>(pieces, 1));
    }
  }
}

TEST(Parallel, ManyShortRunsInARowEachSeeTheirOwnWork) {
  Parallel parallel(4);
  for (std::size_t round = 0; round < 5000; ++round) {
    const std::size_t pieces = round % 7;
    std::vector<std::size_t> results(pieces, 0);
    parallel.run(pieces, [&, round](std::size_t piece) { results[piece] = round + piece; });
    for (std::size_t piece = 0; piece < pieces; ++piece) ASSERT_EQ(results[piece], round + piece);
  }
}

TEST(Parallel, RunsAfterAPauseWakeTheHelpers) {
  Parallel parallel(2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for (int round = 0; round < 3; ++round) {
    seen.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    parallel.run(2, [&](std::size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the other must take one
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(seen.size(), 2u);
  }
}

TEST(Parallel, WaitingHelpersUseNoProcessorTime) {
  Parallel parallel(8);
  std::atomic<int> done = 0;
  parallel.run(100, [&](std::size_t) { ++done; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::uint64_t before = cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_ns() - before, 20'000'000u);
  EXPECT_EQ(done, 100);
}

TEST(Parallel, HelpersBlockSignalsAndTheCallerKeepsItsMask) {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Parallel parallel(2);
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
  const auto caller = std::this_thread::get_id();
  std::atomic<int> helpers = 0;
  parallel.run(2, [&](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    if (std::this_thread::get_id() == caller) return;
    sigset_t mask;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGALRM, SIGCHLD})
      EXPECT_TRUE(sigismember(&mask, signal)) << signal;
    EXPECT_FALSE(sigismember(&mask, SIGSEGV));
    ++helpers;
  });
  EXPECT_EQ(helpers, 1);
}

}  // namespace
}  // namespace belay::os
