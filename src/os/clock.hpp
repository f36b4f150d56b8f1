// SPDX-License-Identifier: Apache-2.0
// Time and randomness, injected so that the simulator can replay a history from its seed.
#pragma once

#include <cstdint>

namespace belay::os {

/// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::uint64_t now_ns() = 0;  ///< monotonic
  /// The processor's time that this thread has had; where that is not known, as now_ns().
  virtual std::uint64_t thread_ns() { return now_ns(); }
  virtual std::int64_t wall_ns() = 0;  ///< since 1970
  virtual void sleep_ns(std::uint64_t) = 0;
};

/// Thread-safe.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;
};

Clock& system_clock();
Random& system_random();

}  // namespace belay::os
