// SPDX-License-Identifier: Apache-2.0
#include "session/schedule.hpp"

#include <cmath>

namespace belay::session {

std::uint64_t Schedule::interval_ns() const {
  if (interval_.kind == Interval::Kind::time) return interval_.time_ns;
  // Young: the interval that loses least is sqrt(2 x cost of a version x time between failures).
  return static_cast<std::uint64_t>(
      std::sqrt(2.0 * static_cast<double>(cost_ns_) * static_cast<double>(mtbf_ns_)));
}

bool Schedule::due() {
  const bool first = !asked_;
  asked_ = true;
  if (interval_.kind == Interval::Kind::calls) {
    const bool now = calls_ == 0;
    calls_ = (calls_ + 1) % interval_.calls;
    return now;
  }
  return first || !last_ns_ || clock_.now_ns() - *last_ns_ >= interval_ns();
}

void Schedule::captured(std::uint64_t cost_ns) {
  last_ns_ = clock_.now_ns();
  // The first version writes everything and says little about the rest: later ones count more.
  cost_ns_ = cost_ns_ == 0 ? cost_ns : (cost_ns_ + cost_ns) / 2;
}

}  // namespace belay::session
