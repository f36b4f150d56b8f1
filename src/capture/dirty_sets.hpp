// SPDX-License-Identifier: Apache-2.0
// Which blocks may have changed since the last existing version.
#pragma once

#include "capture/tracker.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::capture {

/// A tracker tells what changed since it was last asked. What a version that failed, or whose fate
/// is open, was told stays in the set: it is cleared only when a version exists. One thread.
class DirtySets {
 public:
  /// nullptr: nobody can tell, every block may always have changed.
  explicit DirtySets(std::unique_ptr<Tracker> tracker) : tracker_(std::move(tracker)) {}

  /// Asks the tracker and re-arms it; to be called before the region is read. nullptr: every block
  /// may have changed. Valid until the next call of any member.
  const std::vector<bool>* collect(const std::string& region, std::span<const std::byte> memory,
                                   std::uint32_t block_bytes);
  /// The version whose capture made the last collect() calls exists.
  void version_exists();
  /// It does not: the next version must look at its blocks again.
  void version_failed();
  /// The region is new, moved, or was filled by restore(): its next capture reads all of it.
  void distrust(std::string_view region);
  void distrust_all();

 private:
  struct Set {
    std::vector<bool> dirty;
    bool trusted = false;    ///< since a version that exists
    bool collected = false;  ///< in the version under way
  };

  std::unique_ptr<Tracker> tracker_;
  std::map<std::string, Set, std::less<>> sets_;
};

}  // namespace belay::capture
