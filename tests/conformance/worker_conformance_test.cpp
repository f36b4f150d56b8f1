// SPDX-License-Identifier: Apache-2.0
// What every Worker must do.
#include "session/worker.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace belay::session {
namespace {

struct Kind {
  const char* name;
  std::unique_ptr<Worker> (*make)();
};

class WorkerConformance : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Worker> worker_ = GetParam().make();
};

std::vector<int> up_to(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST_P(WorkerConformance, JobsRunInTheOrderOfSubmissionOneAtATime) {
  std::vector<int> order;  // not locked: jobs must not overlap, and wait_all() must order memory
  for (int i = 0; i < 1000; ++i) worker_->submit([&order, i] { order.push_back(i); });
  worker_->wait_all();
  EXPECT_FALSE(worker_->pending());
  EXPECT_EQ(order, up_to(1000));
}

TEST_P(WorkerConformance, NothingIsPendingBeforeTheFirstJob) {
  EXPECT_FALSE(worker_->pending());
  worker_->wait_all();
}

TEST_P(WorkerConformance, TheDestructorWaitsForAllJobs) {
  std::vector<int> order;
  for (int i = 0; i < 10; ++i)
    worker_->submit([&order, i] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      order.push_back(i);
    });
  worker_.reset();
  EXPECT_EQ(order, up_to(10));
}

TEST_P(WorkerConformance, WaitingOneByOneWhilePendingEndsWithAllDone) {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> order;
    for (int i = 0; i < 5; ++i) worker_->submit([&order, i] { order.push_back(i); });
    while (worker_->pending()) worker_->wait_one();
    ASSERT_EQ(order, up_to(5));
  }
}

TEST_P(WorkerConformance, AJobIsDestroyedBeforeItCountsAsEnded) {
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = held;
  worker_->submit([mine = std::move(held)] { EXPECT_EQ(*mine, 7); });
  worker_->wait_all();
  EXPECT_TRUE(watched.expired());
}

TEST_P(WorkerConformance, JobsSeeWhatWasWrittenBeforeTheyWereSubmitted) {
  std::vector<int> shared;
  for (int i = 0; i < 100; ++i) {
    shared.push_back(i);
    worker_->submit([&shared, i] { EXPECT_EQ(shared.back(), i); });
    worker_->wait_all();
  }
}

INSTANTIATE_TEST_SUITE_P(Worker, WorkerConformance,
                         ::testing::Values(Kind{"inline", make_inline_worker},
                                           Kind{"thread", make_thread_worker}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace belay::session
