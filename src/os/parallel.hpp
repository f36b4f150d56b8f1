// SPDX-License-Identifier: Apache-2.0
// Work in pieces on several threads, for the inner loops of checkpoint().
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace belay::os {

/// Helper threads that wait for run(). Between runs that follow closely they stay awake for some
/// microseconds, then sleep. They take no signals, but for faults of their own.
class Parallel {
 public:
  /// `threads` includes the caller: with 1 no thread is started. Where the system refuses a thread
  /// there are fewer.
  explicit Parallel(unsigned threads);
  ~Parallel();
  Parallel(const Parallel&) = delete;
  Parallel& operator=(const Parallel&) = delete;

  /// Calls work(0) ... work(pieces - 1), each once, in any order, on the caller and the helpers,
  /// and returns when all have returned. REQUIRES: one caller at a time; `work` does not throw and
  /// does not call run().
  void run(std::size_t pieces, const std::function<void(std::size_t)>& work);
  unsigned threads() const { return static_cast<unsigned>(helpers_.size()) + 1; }

 private:
  void start(unsigned helpers);
  void help();
  void take_pieces();
  void end_run();

  std::vector<std::thread> helpers_;

  // A run, written before it is opened and left alone until every helper inside has left it.
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t pieces_ = 0;
  std::atomic<std::size_t> next_{0};

  // Changed under the mutex; atomic only so that those who wait may look before they sleep.
  std::mutex mutex_;
  std::condition_variable opened_;
  std::condition_variable left_;
  std::atomic<std::uint64_t> runs_{0};  ///< counts the runs opened
  std::atomic<std::size_t> inside_{0};  ///< helpers in the open run
  std::atomic<bool> stopping_{false};
  bool open_ = false;  ///< may helpers still enter?
};

}  // namespace belay::os
