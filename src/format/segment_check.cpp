// SPDX-License-Identifier: Apache-2.0
#include "format/segment_check.hpp"

#include "base/try.hpp"

namespace belay::format {

Result<void> check_extents(Code code, std::span<const Extent> extents,
                           const SegmentFooter& footer) {
  if (footer.index_offset < kSegmentHeaderBytes)
    return fail(code, "segment index at {}: that is inside the header", footer.index_offset);
  std::uint64_t end = kSegmentHeaderBytes;
  std::uint64_t entries = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent& extent = extents[i];
    // Differences, not sums: the fields may be hostile.
    if (extent.offset < end || extent.offset > footer.index_offset ||
        extent.encoded_bytes > footer.index_offset - extent.offset)
      return fail(code, "segment index: extent {} at {} overlaps another or leaves the payload", i,
                  extent.offset);
    if (extent.entries == 0 || extent.first_entry != entries ||
        extent.entries > footer.entries - entries)
      return fail(code, "segment index: extent {} does not continue the entries at {}", i, entries);
    if (extent.codec != CodecId::raw)
      return fail(code, "segment index: extent {} has the unknown codec {}", i,
                  static_cast<unsigned>(extent.codec));
    if (extent.encoded_bytes != extent.raw_bytes)
      return fail(code, "segment index: raw extent {} has {} bytes for {}", i, extent.encoded_bytes,
                  extent.raw_bytes);
    end = extent.offset + extent.encoded_bytes;
    entries += extent.entries;
  }
  if (entries != footer.entries)
    return fail(code, "segment index: extents have {} entries, not {}", entries, footer.entries);
  return {};
}

Result<void> EntryChecker::check(const IndexEntry& entry) {
  if (entry.length == 0 || entry.length > block_bytes_)
    return fail(code_, "segment index: a block of {} bytes, of at most {}", entry.length,
                block_bytes_);
  const Extent& extent = extents_.front();
  seen_bytes_ += entry.length;
  if (++seen_entries_ < extent.entries) return {};
  if (seen_bytes_ != extent.raw_bytes)
    return fail(code_, "segment index: blocks of {} bytes in an extent of {}", seen_bytes_,
                extent.raw_bytes);
  extents_ = extents_.subspan(1);
  seen_entries_ = 0;
  seen_bytes_ = 0;
  return {};
}

}  // namespace belay::format
