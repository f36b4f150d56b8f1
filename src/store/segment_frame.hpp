// SPDX-License-Identifier: Apache-2.0
// What encloses the blocks and the index of a segment, or of a copy of one.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/segment.hpp"
#include "os/files.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace belay::store {

struct SegmentFrame {
  std::uint64_t file_bytes = 0;
  format::SegmentHeader header;
  format::SegmentFooter footer;

  /// Of the index, with its padding.
  std::uint64_t index_end() const { return file_bytes - format::kSegmentFooterBytes; }
};

/// corruption if the file is not that of the segment `id` of `store`, or of a copy of it. A segment
/// has `wanted_bytes`, if that is known.
Result<SegmentFrame> read_frame(os::File& file, FileKind kind, const SegmentId& id,
                                const StoreId& store, std::optional<std::uint64_t> wanted_bytes);

/// Verifies the index of a segment or a bundle without holding it: `take` gets the entries, in
/// order. The extents. After an error what was taken is worthless.
Result<std::vector<format::Extent>> verify_index(
    os::File& file, const SegmentFrame& frame,
    const std::function<void(const format::IndexEntry&)>& take);

}  // namespace belay::store
