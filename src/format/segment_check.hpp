// SPDX-License-Identifier: Apache-2.0
// What must hold between the extents and entries of a segment, for writers and readers alike.
#pragma once

#include "format/segment.hpp"

namespace belay::format {

/// Extents lie in the payload, behind the rider, in order, disjoint, and claim all entries in
/// order. Some are absent if and only if the footer says that the file is partial, and have codecs
/// only if it says that it is encoded.
Result<void> check_extents(Code code, std::span<const Extent> extents, const SegmentFooter& footer,
                           std::uint64_t rider_bytes);

/// Is fed all entries in order. REQUIRES: check_extents passed, and the extents outlive it.
class EntryChecker {
 public:
  EntryChecker(Code code, std::span<const Extent> extents, std::uint32_t block_bytes)
      : code_(code), extents_(extents), block_bytes_(block_bytes) {}

  Result<void> check(const IndexEntry& entry);

 private:
  Code code_;
  std::span<const Extent> extents_;  ///< those whose entries did not all come yet
  std::uint32_t block_bytes_;
  std::uint64_t seen_entries_ = 0;  ///< of the first of them
  std::uint64_t seen_bytes_ = 0;
};

}  // namespace belay::format
