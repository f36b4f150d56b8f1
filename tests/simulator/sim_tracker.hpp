// SPDX-License-Identifier: Apache-2.0
// A tracker that knows exactly what the simulated application wrote: a session that loses one dirty
// block, or drops the dirty set of a failed version, restores wrong bytes.
#pragma once

#include "capture/tracker.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace belay::simulator {

/// What one process wrote since the tracker last looked, by region.
class WriteLog {
 public:
  /// Bytes [begin, end) of the region were written.
  void wrote(const std::string& region, std::uint64_t begin, std::uint64_t end) {
    if (begin < end) regions_[region].ranges.emplace_back(begin, end);
  }
  /// The region's memory is not what it was: the tracker cannot tell.
  void forget(const std::string& region) { regions_.erase(region); }
  void forget_all() { regions_.clear(); }

 private:
  friend class SimTracker;
  struct Written {
    bool armed = false;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };
  std::map<std::string, Written, std::less<>> regions_;
};

class SimTracker final : public capture::Tracker {
 public:
  /// `log` outlives the tracker.
  explicit SimTracker(WriteLog& log) : log_(&log) {}
  bool collect(std::string_view region, std::span<const std::byte> memory,
               std::uint32_t block_bytes, std::vector<bool>& dirty) override;

 private:
  WriteLog* log_;
};

}  // namespace belay::simulator
