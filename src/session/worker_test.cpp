// SPDX-License-Identifier: Apache-2.0
#include "session/worker.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

namespace belay::session {
namespace {

using std::chrono::milliseconds;

std::ptrdiff_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(InlineWorker, RunsJobsInSubmit) {
  const auto worker = make_inline_worker();
  std::thread::id ran_on;
  worker->submit([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(ThreadWorker, StartsItsThreadWithTheFirstJob) {
  const auto before = threads_of_this_process();
  const auto worker = make_thread_worker();
  EXPECT_EQ(threads_of_this_process(), before);
  std::thread::id ran_on;
  worker->submit([&] { ran_on = std::this_thread::get_id(); });
  worker->wait_all();
  EXPECT_NE(ran_on, std::this_thread::get_id());
  EXPECT_GT(threads_of_this_process(), before) << "a sanitizer may have added its own";
}

TEST(ThreadWorker, KeepsOneThreadForAllJobs) {
  const auto worker = make_thread_worker();
  std::vector<std::thread::id> ran_on;
  for (int i = 0; i < 10; ++i)
    worker->submit([&] { ran_on.push_back(std::this_thread::get_id()); });
  worker->wait_all();
  EXPECT_EQ(std::count(ran_on.begin(), ran_on.end(), ran_on.front()), 10);
}

TEST(ThreadWorker, BlocksSignalsOnItsThreadAndLeavesTheCallersMaskAlone) {
  sigset_t before;
  sigset_t after;
  sigset_t inside;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  const auto worker = make_thread_worker();
  worker->submit([&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  worker->wait_all();
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD, SIGSEGV}) {
    EXPECT_EQ(sigismember(&inside, signal), 1) << signal;
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
}

TEST(ThreadWorker, IsPendingUntilItsLastJobHasEnded) {
  std::promise<void> gate;
  const auto worker = make_thread_worker();
  worker->submit([opened = gate.get_future().share()] { opened.wait(); });
  EXPECT_TRUE(worker->pending());
  gate.set_value();
  worker->wait_all();
  EXPECT_FALSE(worker->pending());
}

TEST(ThreadWorker, WaitOneReturnsAfterOneJobWhileOthersArePending) {
  std::promise<void> first;
  std::promise<void> second;
  const auto worker = make_thread_worker();
  worker->submit([opened = first.get_future().share()] { opened.wait(); });
  worker->submit([opened = second.get_future().share()] { opened.wait(); });
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    first.set_value();
  });
  worker->wait_one();
  EXPECT_TRUE(worker->pending()) << "the second job cannot have ended";
  opener.join();
  second.set_value();
  worker->wait_one();
  EXPECT_FALSE(worker->pending());
}

TEST(ThreadWorker, WaitOneDoesNotHangIfTheLastJobEndedJustBefore) {
  const auto worker = make_thread_worker();
  worker->submit([] {});
  worker->wait_all();
  worker->wait_one();
}

TEST(ThreadWorker, RunsJobsInSubmitWhereTheSystemHasNoThreadToGive) {
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_t impossible;
  ASSERT_EQ(pthread_attr_init(&impossible), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&impossible, std::size_t{1} << 50), 0);
  ASSERT_EQ(pthread_setattr_default_np(&impossible), 0);
  std::thread::id ran_on;
  const auto worker = make_thread_worker();
  worker->submit([&] { ran_on = std::this_thread::get_id(); });
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_FALSE(worker->pending());
  worker->submit([&] { ran_on = std::this_thread::get_id(); });
  worker->wait_all();
  EXPECT_NE(ran_on, std::this_thread::get_id()) << "it tries again with the next job";
  pthread_attr_destroy(&impossible);
  pthread_attr_destroy(&usual);
}

}  // namespace
}  // namespace belay::session
