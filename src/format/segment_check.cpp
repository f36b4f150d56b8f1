// SPDX-License-Identifier: Apache-2.0
#include "format/segment_check.hpp"

#include "base/try.hpp"

namespace belay::format {
namespace {

/// `end` is that of the extent before.
Result<void> check_codec(Code code, const Extent& extent, std::size_t number, std::uint64_t end,
                         bool encoded) {
  switch (extent.codec) {
    case CodecId::raw:
      if (extent.encoded_bytes == extent.raw_bytes) return {};
      return fail(code, "segment index: raw extent {} has {} bytes for {}", number,
                  extent.encoded_bytes, extent.raw_bytes);
    case CodecId::absent:
      if (extent.encoded_bytes == 0 && extent.offset == end) return {};
      return fail(code, "segment index: absent extent {} has {} bytes at {}, not 0 at {}", number,
                  extent.encoded_bytes, extent.offset, end);
    default:
      break;
  }
  if (encoded && extent.codec <= kLastCodec) {
    if (extent.encoded_bytes < extent.raw_bytes && extent.encoded_bytes > 0 &&
        extent.raw_bytes <= kMaxEncodedExtentBytes)
      return {};
    return fail(code, "segment index: extent {} has {} bytes for {} in codec {}", number,
                extent.encoded_bytes, extent.raw_bytes, static_cast<unsigned>(extent.codec));
  }
  return fail(code, "segment index: extent {} has the unknown codec {}", number,
              static_cast<unsigned>(extent.codec));
}

}  // namespace

Result<void> check_extents(Code code, std::span<const Extent> extents, const SegmentFooter& footer,
                           std::uint64_t rider_bytes) {
  if (footer.index_offset < kSegmentHeaderBytes ||
      rider_bytes > footer.index_offset - kSegmentHeaderBytes)
    return fail(code, "segment index at {}: that is inside the header", footer.index_offset);
  std::uint64_t end = kSegmentHeaderBytes + rider_bytes;
  std::uint64_t entries = 0;
  bool absent = false;
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
    BELAY_TRY(check_codec(code, extent, i, end, footer.encoded));
    if (footer.partial && i > 0 && extent.codec == extents[i - 1].codec)
      return fail(code, "segment index: extent {} of a partial copy is like the one before", i);
    absent = absent || extent.codec == CodecId::absent;
    end = extent.offset + extent.encoded_bytes;
    entries += extent.entries;
  }
  if (entries != footer.entries)
    return fail(code, "segment index: extents have {} entries, not {}", entries, footer.entries);
  if (absent != footer.partial)
    return fail(code, "segment index: {}",
                absent ? "blocks are absent from a file that says it has all"
                       : "no block is absent from a file that says it is partial");
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
