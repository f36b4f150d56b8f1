// SPDX-License-Identifier: Apache-2.0
#include "os/clock.hpp"

#include <sys/random.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <limits>

namespace belay::os {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t read_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);  // cannot fail for the clocks that are asked for here
  return std::int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  std::uint64_t now_ns() override { return static_cast<std::uint64_t>(read_ns(CLOCK_MONOTONIC)); }
  std::uint64_t thread_ns() override {
    return static_cast<std::uint64_t>(read_ns(CLOCK_THREAD_CPUTIME_ID));
  }
  std::int64_t wall_ns() override { return read_ns(CLOCK_REALTIME); }

  void sleep_ns(std::uint64_t duration) override {
    constexpr auto kLast = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::uint64_t now = now_ns();
    const std::uint64_t end = duration > kLast - now ? kLast : now + duration;
    const timespec until{.tv_sec = static_cast<time_t>(end / kSecond),
                         .tv_nsec = static_cast<long>(end % kSecond)};
    // To a point in time, so that a stream of signals cannot stretch it.
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
};

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    for (;;) {
      const ssize_t got = ::getrandom(&value, sizeof value, 0);
      if (got == sizeof value) return value;
      if (got < 0 && errno != EINTR) return without_kernel();
    }
  }

 private:
  // A sandbox may forbid getrandom. What is drawn here names stores and seeds hashes: it must be
  // different each time, not secret. The mixing is that of splitmix64.
  std::uint64_t without_kernel() {
    std::uint64_t z = static_cast<std::uint64_t>(read_ns(CLOCK_REALTIME)) ^
                      (static_cast<std::uint64_t>(read_ns(CLOCK_MONOTONIC)) << 21) ^
                      reinterpret_cast<std::uintptr_t>(this);
    z += (draws_.fetch_add(1) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::atomic<std::uint64_t> draws_{0};
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

Random& system_random() {
  static SystemRandom random;
  return random;
}

}  // namespace belay::os
