// SPDX-License-Identifier: Apache-2.0
// A segment or copy without its blocks: all that its header, index and footer are made of.
#pragma once

#include <belay/result.hpp>

#include "format/segment.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace belay::inspect {

struct SegmentOutline {
  format::SegmentHeader header;
  std::vector<format::IndexEntry> entries;
  std::vector<bool> present;  ///< by entry: is the block in the file?

  /// The same as the segment itself.
  SegmentOutline complete() const;
  /// A copy that has only these. REQUIRES: one of them is true.
  SegmentOutline with_only(std::vector<bool> wanted) const;
  /// Raw and absent by turns, as a writer lays them out.
  std::vector<format::Extent> extents() const;
  std::uint64_t file_bytes() const;
};

/// What the file's own header, index and footer say; its blocks may be damaged.
Result<SegmentOutline> read_outline(const StoreView& view, const BlockSource& source);

/// The same for a copy of a segment that is known, where some of that is damaged: whichever of
/// header and index is left tells which blocks it had. Unset: neither does.
std::optional<SegmentOutline> read_damaged_copy(const StoreView& view, const BlockSource& source,
                                                const SegmentOutline& segment);

/// What the segment of the manifest's own version and rank must be. Unset: it has none.
std::optional<SegmentOutline> outline_of(const Manifest& manifest);

}  // namespace belay::inspect
