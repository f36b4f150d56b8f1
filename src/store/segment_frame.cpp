// SPDX-License-Identifier: Apache-2.0
#include "store/segment_frame.hpp"

#include "base/try.hpp"
#include "format/index_stream.hpp"
#include "store/pages.hpp"

#include <algorithm>

namespace belay::store {
namespace {

constexpr std::uint64_t kEntriesAtOnce = 1024;

}  // namespace

Result<SegmentFrame> read_frame(os::File& file, FileKind kind, const SegmentId& id,
                                const StoreId& store, std::optional<std::uint64_t> wanted_bytes) {
  const bool is_segment = kind == FileKind::segment;
  SegmentFrame frame;
  BELAY_ASSIGN(frame.file_bytes, file.size());
  if (is_segment && wanted_bytes && *wanted_bytes != frame.file_bytes)
    return fail(Code::corruption, "has {} bytes instead of {}", frame.file_bytes, *wanted_bytes);
  if (frame.file_bytes < format::kSegmentHeaderBytes + format::kSegmentFooterBytes)
    return fail(Code::corruption, "too short for a segment");
  BELAY_ASSIGN(const auto front, read_pages(file, 0, format::kSegmentHeaderBytes));
  BELAY_ASSIGN(frame.header, format::decode_segment_header(front.bytes()));
  const format::SegmentHeader& header = frame.header;
  if (is_segment && header.partial)
    return fail(Code::corruption, "says that it has only some of its blocks, as only copies may");
  if (header.origin.store != store)
    return fail(Code::corruption, "belongs to another store ({})", to_hex(header.origin.store));
  if (SegmentId{header.origin.key, header.origin.rank} != id)
    return fail(Code::corruption, "its content is another file's (run {}, version {}, rank {})",
                header.origin.key.run, header.origin.key.version, header.origin.rank);
  BELAY_ASSIGN(const auto back, read_pages(file, frame.index_end(), frame.file_bytes));
  BELAY_ASSIGN(frame.footer, format::decode_segment_footer(back.bytes(), frame.file_bytes));
  return frame;
}

Result<std::vector<format::Extent>> verify_index(
    os::File& file, const SegmentFrame& frame,
    const std::function<void(const format::IndexEntry&)>& take) {
  const format::SegmentFooter& footer = frame.footer;
  format::IndexCheck check(footer, frame.header);
  {
    BELAY_ASSIGN(const auto bytes,
                 read_pages(file, footer.index_offset, format::index_entry_offset(footer, 0)));
    BELAY_TRY(check.take_extents(bytes.bytes()));
  }
  PageReader reader;
  std::vector<std::byte> bytes;
  for (std::uint64_t first = 0; first < footer.entries; first += kEntriesAtOnce) {
    bytes.resize(std::min(kEntriesAtOnce, footer.entries - first) * format::kIndexEntryBytes);
    BELAY_TRY(reader.read(file, format::index_entry_offset(footer, first), bytes));
    BELAY_TRY(check.take_entries(bytes, take));
  }
  const std::uint64_t end = format::index_entry_offset(footer, footer.entries);
  bytes.resize(frame.index_end() - end);
  BELAY_TRY(reader.read(file, end, bytes));
  BELAY_TRY(check.finish(bytes));
  return check.release_extents();
}

}  // namespace belay::store
