// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_tracker.hpp"

namespace belay::simulator {

bool SimTracker::collect(std::string_view region, std::span<const std::byte>,
                         std::uint32_t block_bytes, std::vector<bool>& dirty) {
  auto& written = log_->regions_[std::string(region)];
  const bool can_tell = std::exchange(written.armed, true);
  for (const auto& [begin, end] : std::exchange(written.ranges, {}))
    for (std::uint64_t block = begin / block_bytes; block <= (end - 1) / block_bytes; ++block)
      if (block < dirty.size()) dirty[block] = true;
  return can_tell;
}

}  // namespace belay::simulator
