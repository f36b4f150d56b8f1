// SPDX-License-Identifier: Apache-2.0
// How a copy that has only some of a segment's blocks is laid out.
#pragma once

#include "format/segment.hpp"

#include <span>
#include <vector>

namespace belay::session {

/// Runs of blocks that are in the copy and of blocks that are not. `present` says which, for each
/// entry of the segment's index.
inline std::vector<format::Extent> extents_of(std::span<const format::IndexEntry> entries,
                                              const std::vector<bool>& present) {
  std::vector<format::Extent> extents;
  std::uint64_t offset = format::kSegmentHeaderBytes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto codec = present[i] ? CodecId::raw : CodecId::absent;
    if (extents.empty() || extents.back().codec != codec)
      extents.push_back({.offset = offset, .first_entry = i, .codec = codec});
    format::Extent& extent = extents.back();
    const std::uint32_t length = entries[i].length;
    ++extent.entries;
    extent.raw_bytes += length;
    if (!present[i]) continue;
    extent.encoded_bytes += length;
    offset += length;
  }
  return extents;
}

}  // namespace belay::session
