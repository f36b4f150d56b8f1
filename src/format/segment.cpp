// SPDX-License-Identifier: Apache-2.0
#include "format/segment.hpp"

#include "format/checksum.hpp"
#include "format/index_stream.hpp"
#include "format/segment_check.hpp"
#include "format/wire.hpp"

namespace belay::format {
namespace {

constexpr std::string_view kHeaderMagic = "BELAYSEG";
constexpr std::string_view kFooterMagic = "GESYALEB";
constexpr std::size_t kHeaderReservedBytes = 7;
constexpr std::size_t kHeaderSpareBytes = 40;
constexpr std::size_t kExtentBytes = kIndexExtentBytes;
constexpr std::size_t kEntryBytes = kIndexEntryBytes;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kFlushBytes = 64 << 10;
/// Keeps sums of sizes far from overflow.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 60;

/// Of a header or footer.
template <class Part>
std::uint32_t format_of(const Part& part) {
  return part.encoded ? kCodecsFormat : part.partial ? kCopiesFormat : kFirstFormat;
}

template <class Part>
void set_format(Part& part, std::uint32_t format) {
  part.partial = format == kCopiesFormat;
  part.encoded = format == kCodecsFormat;
}

void put_extent(WireWriter& writer, const Extent& extent) {
  writer.field(extent.offset);
  writer.field(extent.encoded_bytes);
  writer.field(extent.raw_bytes);
  writer.field(extent.first_entry);
  writer.field(extent.entries);
  writer.field(static_cast<std::uint16_t>(extent.codec));
  writer.field(std::uint16_t{0});
}

Result<Extent> get_extent(WireReader& reader) {
  Extent extent;
  extent.offset = reader.field<std::uint64_t>();
  extent.encoded_bytes = reader.field<std::uint64_t>();
  extent.raw_bytes = reader.field<std::uint64_t>();
  extent.first_entry = reader.field<std::uint64_t>();
  extent.entries = reader.field<std::uint32_t>();
  extent.codec = static_cast<CodecId>(reader.field<std::uint16_t>());
  if (!reader.zeros(2)) return fail(Code::corruption, "reserved bytes of an extent are not zero");
  return extent;
}

void put_entry(WireWriter& writer, const IndexEntry& entry) {
  writer.pair(entry.fingerprint.low, entry.fingerprint.high);
  writer.field(entry.length);
}

IndexEntry get_entry(WireReader& reader) {
  IndexEntry entry;
  entry.fingerprint.low = reader.field<std::uint64_t>();
  entry.fingerprint.high = reader.field<std::uint64_t>();
  entry.length = reader.field<std::uint32_t>();
  return entry;
}

std::uint64_t header_checksum(const SegmentHeader& header) {
  const auto bytes = encode_segment_header(header);
  return checksum64(std::span(bytes).first(kSegmentHeaderBytes - kChecksumBytes));
}

/// Passes bytes on in large pieces and keeps their checksum.
class IndexStream {
 public:
  explicit IndexStream(ByteSink& sink) : sink_(&sink) { buffer_.reserve(kFlushBytes + 64); }

  WireWriter writer() { return WireWriter(buffer_); }
  Result<void> flush_if_full() { return buffer_.size() < kFlushBytes ? Result<void>() : flush(); }
  Result<void> flush() {
    checksum_.update(buffer_);
    BELAY_TRY(sink_->append(buffer_));
    buffer_.clear();
    return {};
  }
  std::uint64_t checksum() { return checksum_.digest(); }

 private:
  ByteSink* sink_;
  std::vector<std::byte> buffer_;
  Checksum64 checksum_;
};

std::uint64_t file_bytes_of(const SegmentFooter& footer) {
  return segment_file_bytes(footer.index_offset - kSegmentHeaderBytes, footer.extents,
                            footer.entries);
}

std::vector<std::byte> encode_segment_footer(const SegmentFooter& footer) {
  std::vector<std::byte> bytes;
  bytes.reserve(kSegmentFooterBytes);
  WireWriter writer(bytes);
  writer.start(kFooterMagic, format_of(footer));
  writer.field(std::uint32_t{0});
  writer.field(footer.index_offset);
  writer.field(footer.extents);
  writer.field(footer.entries);
  writer.field(footer.index_checksum);
  writer.field(footer.header_checksum);
  writer.field(checksum64(bytes));
  return bytes;
}

Result<void> check_same_file(const SegmentFooter& footer, const SegmentHeader& header) {
  if (format_of(footer) == format_of(header) && footer.header_checksum == header_checksum(header))
    return {};
  return fail(Code::corruption, "segment: header and footer are of different files");
}

Result<std::vector<Extent>> get_extents(std::span<const std::byte> bytes,
                                        const SegmentFooter& footer, const SegmentHeader& header) {
  WireReader reader(bytes);
  std::vector<Extent> extents;
  extents.reserve(footer.extents);
  for (std::uint64_t i = 0; i < footer.extents; ++i) {
    BELAY_ASSIGN(const Extent extent, get_extent(reader));
    extents.push_back(extent);
  }
  BELAY_TRY(check_extents(Code::corruption, extents, footer, header.rider_bytes));
  return extents;
}

}  // namespace

std::uint64_t segment_file_bytes(std::uint64_t payload_bytes, std::uint64_t extents,
                                 std::uint64_t entries) {
  return round_up(kSegmentHeaderBytes + payload_bytes + kExtentBytes * extents +
                      kEntryBytes * entries + kSegmentFooterBytes,
                  kFileAlignment);
}

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header) {
  std::vector<std::byte> bytes;
  bytes.reserve(kSegmentHeaderBytes);
  WireWriter writer(bytes);
  writer.start(kHeaderMagic, format_of(header));
  writer.field(header.block_bytes);
  put_origin(writer, header.origin);
  writer.field(static_cast<std::uint8_t>(header.hash));
  writer.zeros(kHeaderReservedBytes);
  writer.field(header.rider_bytes);
  writer.zeros(kHeaderSpareBytes);
  writer.field(checksum64(bytes));
  std::array<std::byte, kSegmentHeaderBytes> result;
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  BELAY_ASSIGN(const auto format, get_start(reader, kHeaderMagic));
  if (bytes.size() != kSegmentHeaderBytes)
    return fail(Code::corruption, "segment header of {} bytes: the file was cut", bytes.size());
  SegmentHeader header;
  set_format(header, format);
  header.block_bytes = reader.field<std::uint32_t>();
  header.origin = get_origin(reader);
  header.hash = static_cast<HashKind>(reader.field<std::uint8_t>());
  bool reserved_is_zero = reader.zeros(kHeaderReservedBytes);
  header.rider_bytes = reader.field<std::uint64_t>();
  reserved_is_zero = reader.zeros(kHeaderSpareBytes) && reserved_is_zero;
  if (reader.field<std::uint64_t>() !=
      checksum64(bytes.first(kSegmentHeaderBytes - kChecksumBytes)))
    return damaged("segment header");
  if (!reserved_is_zero || (header.rider_bytes != 0 && !header.encoded))
    return fail(Code::corruption, "segment header: reserved bytes are not zero");
  BELAY_TRY(within("segment header",
                   check_header(Code::corruption, header.origin, header.hash, header.block_bytes)));
  return header;
}

Result<void> encode_segment_end(ByteSink& sink, const SegmentHeader& header,
                                std::span<const Extent> extents, std::uint64_t entries,
                                const std::function<IndexEntry()>& next) {
  BELAY_TRY(check_header(Code::invalid_argument, header.origin, header.hash, header.block_bytes));
  SegmentFooter footer;
  footer.index_offset = sink.offset();
  footer.extents = extents.size();
  footer.entries = entries;
  footer.header_checksum = header_checksum(header);
  footer.partial = header.partial;
  footer.encoded = header.encoded;
  BELAY_TRY(check_extents(Code::invalid_argument, extents, footer, header.rider_bytes));

  IndexStream index(sink);
  for (const Extent& extent : extents) {
    auto writer = index.writer();
    put_extent(writer, extent);
    BELAY_TRY(index.flush_if_full());
  }
  EntryChecker checker(Code::invalid_argument, extents, header.block_bytes);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const IndexEntry entry = next();
    BELAY_TRY(checker.check(entry));
    auto writer = index.writer();
    put_entry(writer, entry);
    BELAY_TRY(index.flush_if_full());
  }
  const std::uint64_t end =
      footer.index_offset + kExtentBytes * footer.extents + kEntryBytes * footer.entries;
  const std::uint64_t file_bytes = file_bytes_of(footer);
  index.writer().zeros(file_bytes - kSegmentFooterBytes - end);
  BELAY_TRY(index.flush());
  footer.index_checksum = index.checksum();
  return sink.append(encode_segment_footer(footer));
}

Result<SegmentFooter> decode_segment_footer(std::span<const std::byte> bytes,
                                            std::uint64_t file_bytes) {
  WireReader reader(bytes);
  BELAY_ASSIGN(const auto format, get_start(reader, kFooterMagic));
  if (bytes.size() != kSegmentFooterBytes || file_bytes > kMaxFileBytes)
    return fail(Code::corruption, "segment of {} bytes with a footer of {}: the file was cut",
                file_bytes, bytes.size());
  const bool reserved_is_zero = reader.zeros(4);
  SegmentFooter footer;
  set_format(footer, format);
  footer.index_offset = reader.field<std::uint64_t>();
  footer.extents = reader.field<std::uint64_t>();
  footer.entries = reader.field<std::uint64_t>();
  footer.index_checksum = reader.field<std::uint64_t>();
  footer.header_checksum = reader.field<std::uint64_t>();
  if (reader.field<std::uint64_t>() !=
      checksum64(bytes.first(kSegmentFooterBytes - kChecksumBytes)))
    return damaged("segment footer");
  const bool in_bounds =
      footer.index_offset >= kSegmentHeaderBytes && footer.index_offset <= file_bytes &&
      footer.extents <= file_bytes / kExtentBytes && footer.entries <= file_bytes / kEntryBytes;
  if (!reserved_is_zero || !in_bounds || file_bytes_of(footer) != file_bytes)
    return fail(Code::corruption,
                "segment footer: {} extents and {} entries from {} do not make a file of {} bytes",
                footer.extents, footer.entries, footer.index_offset, file_bytes);
  return footer;
}

Result<std::vector<Extent>> decode_segment_extents(std::span<const std::byte> bytes,
                                                   const SegmentFooter& footer,
                                                   const SegmentHeader& header) {
  if (footer.extents > bytes.size() / kExtentBytes ||
      footer.entries > (bytes.size() - kExtentBytes * footer.extents) / kEntryBytes)
    return fail(Code::corruption,
                "segment index of {} bytes is too short for {} extents and {} entries",
                bytes.size(), footer.extents, footer.entries);
  if (footer.index_checksum != checksum64(bytes)) return damaged("segment index");
  BELAY_TRY(check_same_file(footer, header));
  return get_extents(bytes, footer, header);
}

Result<void> decode_segment_entries(std::span<const std::byte> bytes, const SegmentFooter& footer,
                                    const SegmentHeader& header, std::span<const Extent> extents,
                                    const std::function<void(const IndexEntry&)>& take) {
  WireReader reader(bytes.subspan(kExtentBytes * footer.extents));
  EntryChecker checker(Code::corruption, extents, header.block_bytes);
  for (std::uint64_t i = 0; i < footer.entries; ++i) {
    const IndexEntry entry = get_entry(reader);
    BELAY_TRY(checker.check(entry));
    take(entry);
  }
  if (!reader.zeros(reader.remaining()))
    return fail(Code::corruption, "segment index: padding is not zero");
  return {};
}

Result<void> IndexCheck::take_extents(std::span<const std::byte> bytes) {
  BELAY_TRY(check_same_file(footer_, header_));
  checksum_.update(bytes);
  BELAY_ASSIGN(extents_, get_extents(bytes, footer_, header_));
  checker_.emplace(Code::corruption, extents_, header_.block_bytes);
  return {};
}

Result<void> IndexCheck::take_entries(std::span<const std::byte> bytes,
                                      const std::function<void(const IndexEntry&)>& take) {
  checksum_.update(bytes);
  WireReader reader(bytes);
  while (reader.remaining() >= kEntryBytes) {
    const IndexEntry entry = get_entry(reader);
    BELAY_TRY(checker_->check(entry));
    take(entry);
  }
  return {};
}

Result<void> IndexCheck::finish(std::span<const std::byte> padding) {
  checksum_.update(padding);
  if (footer_.index_checksum != checksum_.digest()) return damaged("segment index");
  if (!WireReader(padding).zeros(padding.size()))
    return fail(Code::corruption, "segment index: padding is not zero");
  return {};
}

void take_index_entries(std::span<const std::byte> bytes,
                        const std::function<void(const IndexEntry&)>& take) {
  WireReader reader(bytes);
  while (reader.remaining() >= kEntryBytes) take(get_entry(reader));
}

Result<SegmentIndex> decode_segment_index(std::span<const std::byte> bytes,
                                          const SegmentFooter& footer,
                                          const SegmentHeader& header) {
  SegmentIndex index;
  BELAY_ASSIGN(index.extents, decode_segment_extents(bytes, footer, header));
  index.entries.reserve(footer.entries);
  BELAY_TRY(decode_segment_entries(bytes, footer, header, index.extents,
                                   [&](const IndexEntry& e) { index.entries.push_back(e); }));
  return index;
}

}  // namespace belay::format
