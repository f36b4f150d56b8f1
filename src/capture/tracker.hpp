// SPDX-License-Identifier: Apache-2.0
// Which blocks may have been written since the last look: those that were not need no fingerprint.
#pragma once

#include <belay/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace belay::capture {

/// Called by the thread that calls checkpoint().
class Tracker {
 public:
  virtual ~Tracker() = default;
  /// Sets dirty[i] for each block of `memory` that may have been written since the last collect()
  /// of this region, and arms it anew: a write after this call is seen by the next one. Bits that
  /// are set already stay set. Returns false if it cannot tell; then every block counts as written.
  /// REQUIRES: dirty.size() is the number of blocks.
  virtual bool collect(std::string_view region, std::span<const std::byte> memory,
                       std::uint32_t block_bytes, std::vector<bool>& dirty) = 0;
};

/// track = none: nullptr. Nobody can tell, so that everything is fingerprinted.
std::unique_ptr<Tracker> make_no_tracker();

}  // namespace belay::capture
