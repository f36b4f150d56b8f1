// SPDX-License-Identifier: Apache-2.0
// A sign of life at regular times, for whoever waits for a process that works.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace belay::session {

/// While it lives, calls `beat` now and then on a thread of its own.
class Pulse {
 public:
  Pulse(std::uint64_t period_ns, std::function<void()> beat)
      : thread_([this, period = std::chrono::nanoseconds(period_ns), beat = std::move(beat)] {
          std::unique_lock lock(mutex_);
          while (!stopped_.wait_for(lock, period, [&] { return stopping_; })) beat();
        }) {}
  ~Pulse() {
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    stopped_.notify_all();
    thread_.join();
  }
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  /// Often enough for one who waits so long.
  static std::uint64_t period_ns(std::uint64_t timeout_ns) {
    constexpr std::uint64_t kMostNs = 1'000'000'000;
    return std::min(timeout_ns / 4 + 1, kMostNs);
  }

 private:
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace belay::session
