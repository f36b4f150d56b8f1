// SPDX-License-Identifier: Apache-2.0
// When the next checkpoint is due.
#pragma once

#include "base/settings.hpp"
#include "os/clock.hpp"

#include <cstdint>
#include <optional>

namespace belay::session {

/// The first question is answered with yes. One thread.
class Schedule {
 public:
  Schedule(const Interval& interval, std::uint64_t mtbf_ns, os::Clock& clock)
      : interval_(interval), mtbf_ns_(mtbf_ns), clock_(clock) {}

  /// Do all ranks get the same answer without asking each other?
  bool same_everywhere() const { return interval_.kind == Interval::Kind::calls; }
  bool due();
  /// A version was captured, and the program waited `cost_ns` for it.
  void captured(std::uint64_t cost_ns);
  /// Time between versions: as set, or what Young's formula gives for the cost seen so far.
  std::uint64_t interval_ns() const;

 private:
  Interval interval_;
  std::uint64_t mtbf_ns_;
  os::Clock& clock_;
  bool asked_ = false;
  std::uint64_t calls_ = 0;
  std::optional<std::uint64_t> last_ns_;  ///< unset: no version was captured yet
  std::uint64_t cost_ns_ = 0;
};

}  // namespace belay::session
