// SPDX-License-Identifier: Apache-2.0
// A bar on standard error while long work goes on.
#pragma once

#include "tools/belay/status_line.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace belay::tool {

/// Draws nothing unless `draws`. Gone from the screen when destroyed.
class Progress {
 public:
  Progress(std::string label, bool draws);

  void update(std::uint64_t done_bytes, std::uint64_t total_bytes);

 private:
  std::string label_;
  StatusLine line_;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace belay::tool
