// SPDX-License-Identifier: Apache-2.0
#include "capture/tracker.hpp"

namespace belay::capture {

std::unique_ptr<Tracker> make_no_tracker() { return nullptr; }

}  // namespace belay::capture
