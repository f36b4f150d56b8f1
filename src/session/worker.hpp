// SPDX-License-Identifier: Apache-2.0
// Where background work runs: inline, or on a thread of its own. The simulator has a third.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace belay::session {

/// Runs jobs one after the other in the order of submission. All members but the jobs are called
/// by one thread. Jobs never submit jobs, never communicate, and never throw.
class Worker {
 public:
  virtual ~Worker() = default;  ///< waits for all jobs
  virtual void submit(std::function<void()> job) = 0;
  /// Are there jobs that have not ended?
  virtual bool pending() = 0;
  /// Waits until at least one more job has ended; returns at once if none is pending, so that a
  /// flag which a job sets may be waited for in a loop.
  virtual void wait_one() = 0;
  virtual void wait_all() = 0;
  /// The same, but not much longer than this. A worker that knows no time waits for all.
  virtual void wait_all_for(std::uint64_t /*ns*/) { wait_all(); }
};

std::unique_ptr<Worker> make_inline_worker();
std::unique_ptr<Worker> make_thread_worker();

}  // namespace belay::session
