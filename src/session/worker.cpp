// SPDX-License-Identifier: Apache-2.0
#include "session/worker.hpp"

#include "os/signals_blocked.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace belay::session {
namespace {

class InlineWorker : public Worker {
 public:
  void submit(std::function<void()> job) override { job(); }
  bool pending() override { return false; }
  void wait_one() override {}
  void wait_all() override {}
};

class ThreadWorker : public Worker {
 public:
  ~ThreadWorker() override {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    submitted_or_stopping_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  void submit(std::function<void()> job) override {
    if (!start()) return job();
    {
      const std::scoped_lock lock(mutex_);
      jobs_.push_back(std::move(job));
      ++submitted_;
    }
    submitted_or_stopping_.notify_one();
  }

  bool pending() override {
    const std::scoped_lock lock(mutex_);
    return ended_ != submitted_;
  }

  void wait_one() override {
    std::unique_lock lock(mutex_);
    const std::uint64_t before = ended_;
    // The last job may have ended between the caller's pending() and here: nothing would follow.
    job_ended_.wait(lock, [&] { return ended_ > before || ended_ == submitted_; });
  }

  void wait_all() override {
    std::unique_lock lock(mutex_);
    job_ended_.wait(lock, [&] { return ended_ == submitted_; });
  }

  void wait_all_for(std::uint64_t ns) override {
    std::unique_lock lock(mutex_);
    job_ended_.wait_for(lock, std::chrono::nanoseconds(ns), [&] { return ended_ == submitted_; });
  }

 private:
  /// False if the system has no thread to give. Jobs then run in submit(), late but done; none can
  /// be waiting, so that the order holds.
  bool start() {
    if (thread_.joinable()) return true;
    const os::SignalsBlocked blocked;
    try {
      thread_ = std::thread([this] { work(); });
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      submitted_or_stopping_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      {
        const std::function<void()> job = std::move(jobs_.front());
        jobs_.pop_front();
        lock.unlock();
        job();
        // What the job holds is destroyed here, before anybody is told that it has ended.
      }
      lock.lock();
      ++ended_;
      job_ended_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable submitted_or_stopping_;
  std::condition_variable job_ended_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t submitted_ = 0;
  std::uint64_t ended_ = 0;
  bool stopping_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace

std::unique_ptr<Worker> make_inline_worker() { return std::make_unique<InlineWorker>(); }
std::unique_ptr<Worker> make_thread_worker() { return std::make_unique<ThreadWorker>(); }

}  // namespace belay::session
