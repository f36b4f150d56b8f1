// SPDX-License-Identifier: Apache-2.0
#include "os/parallel.hpp"

#include "os/signals_blocked.hpp"

#include <chrono>
#include <system_error>

namespace belay::os {
namespace {

constexpr std::chrono::microseconds kAwake(20);

/// Looks for a short while. Yields, since with one rank per core another one may need this core.
template <class Condition>
void spin_until(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kAwake;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace

Parallel::Parallel(unsigned threads) {
  if (threads > 1) start(threads - 1);
}

Parallel::~Parallel() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  opened_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Parallel::start(unsigned helpers) {
  // Faults belong to the thread that caused them.
  const SignalsBlocked blocked({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP});
  helpers_.reserve(helpers);
  try {
    while (helpers_.size() < helpers) helpers_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {
    // A limit on threads: those that are there share the work.
  }
}

void Parallel::run(std::size_t pieces, const std::function<void(std::size_t)>& work) {
  if (helpers_.empty() || pieces < 2) {
    for (std::size_t piece = 0; piece < pieces; ++piece) work(piece);
    return;
  }
  work_ = &work;
  pieces_ = pieces;
  next_.store(0, std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
    runs_.fetch_add(1, std::memory_order_release);
  }
  if (pieces > helpers_.size()) {
    opened_.notify_all();
  } else {
    for (std::size_t wanted = 1; wanted < pieces; ++wanted) opened_.notify_one();
  }
  take_pieces();
  end_run();
}

void Parallel::take_pieces() {
  for (;;) {
    const std::size_t piece = next_.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces_) return;
    (*work_)(piece);
  }
}

// A helper that wakes too late finds the run closed and never looks at its work: so the caller
// waits only for those who have entered, not for all to wake up.
void Parallel::end_run() {
  std::unique_lock lock(mutex_);
  open_ = false;
  if (inside_ == 0) return;
  lock.unlock();
  spin_until([this] { return inside_ == 0; });
  lock.lock();
  left_.wait(lock, [this] { return inside_ == 0; });
}

void Parallel::help() {
  std::uint64_t seen = 0;
  for (;;) {
    spin_until([&] { return stopping_ || runs_ != seen; });
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return stopping_ || (open_ && runs_ != seen); });
    if (stopping_) return;
    seen = runs_;
    ++inside_;
    lock.unlock();
    take_pieces();
    lock.lock();
    if (--inside_ == 0) left_.notify_one();
  }
}

}  // namespace belay::os
