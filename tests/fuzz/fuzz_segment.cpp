// SPDX-License-Identifier: Apache-2.0
#include "format/index_stream.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace belay::fuzz {
namespace {

constexpr std::size_t kFooterFields = 24;  // index_offset, extents, entries

/// The input is index_offset, extents and entries of the footer, then the file up to its zeros. The
/// footer's format version is the header's.
Bytes repaired_segment(View rest) {
  const View fields = rest.first(std::min(rest.size(), kFooterFields));
  const View start = rest.subspan(fields.size());
  Bytes file(start.begin(), start.end());
  file.resize(std::max(file.size(), format::kSegmentHeaderBytes));
  const std::uint64_t header_sum = sum64(file, 0, 120);
  write_at(file, 120, header_sum);
  const Bytes format_version(file.begin() + 8, file.begin() + 12);
  pad_before_footer(file, format::kSegmentFooterBytes);
  const std::size_t footer = file.size();
  append_text(file, "GESYALEB");
  append(file, format_version);
  append_field(file, std::uint32_t{0});
  append(file, fields);
  file.resize(footer + 40);
  std::uint64_t index_offset = 0;
  std::memcpy(&index_offset, file.data() + footer + 16, sizeof(index_offset));
  append_field(file, index_offset <= footer ? sum64(file, index_offset, footer) : 0);
  append_field(file, header_sum);
  append_field(file, sum64(file, footer, file.size()));
  return file;
}

void require_refusal(const Error& error) {
  require(error.code() == Code::corruption || error.code() == Code::unsupported,
          "a refusal is corruption or unsupported");
}

void check_index(const Bytes& file, const format::SegmentHeader& header,
                 const format::SegmentFooter& footer, const format::SegmentIndex& index) {
  for (const auto& extent : index.extents) {
    require(extent.offset >= format::kSegmentHeaderBytes &&
                extent.offset + extent.encoded_bytes <= footer.index_offset,
            "extents lie in the payload");
    require(extent.first_entry + extent.entries <= index.entries.size(), "entries exist");
  }
  for (const auto& entry : index.entries)
    require(entry.length > 0 && entry.length <= header.block_bytes, "blocks have a length");
  format::VectorSink sink(View(file).first(footer.index_offset));
  std::size_t next = 0;
  require(format::encode_segment_end(sink, header, index.extents, index.entries.size(),
                                     [&] { return index.entries[next++]; })
              .has_value(),
          "what decodes can be encoded");
  require(sink.bytes() == file, "there is one encoding");
}

/// As who does not hold all of it reads it: the entries, or nothing.
std::optional<std::vector<format::IndexEntry>> read_in_parts(const Bytes& file,
                                                             const format::SegmentHeader& header,
                                                             const format::SegmentFooter& footer) {
  const auto bytes = [&](std::uint64_t begin, std::uint64_t end) {
    require(begin <= end && end <= file.size(), "the index lies in the file");
    return View(file).subspan(begin, end - begin);
  };
  format::IndexCheck whole(footer, header);
  std::vector<format::IndexEntry> entries;
  const std::uint64_t end = format::index_entry_offset(footer, footer.entries);
  std::uint64_t at = format::index_entry_offset(footer, 0);
  if (!whole.take_extents(bytes(footer.index_offset, at))) return {};
  for (std::uint64_t next = at; at < end; at = next) {
    next = std::min(at + 7 * format::kIndexEntryBytes, end);
    if (!whole.take_entries(bytes(at, next), [&](const auto& entry) { entries.push_back(entry); }))
      return {};
  }
  if (!whole.finish(bytes(end, file.size() - format::kSegmentFooterBytes))) return {};
  return entries;
}

void check(const Bytes& file) {
  const View view(file);
  const auto header =
      format::decode_segment_header(view.first(std::min(file.size(), format::kSegmentHeaderBytes)));
  if (!header) return require_refusal(header.error());
  const auto again = format::encode_segment_header(*header);
  require(std::equal(again.begin(), again.end(), file.begin()), "a header has one encoding");
  const auto footer = format::decode_segment_footer(
      view.last(std::min(file.size(), format::kSegmentFooterBytes)), file.size());
  if (!footer) return require_refusal(footer.error());
  const std::size_t index_end = file.size() - format::kSegmentFooterBytes;
  require(footer->index_offset <= index_end, "the index lies in the file");
  const auto index = format::decode_segment_index(
      view.subspan(footer->index_offset, index_end - footer->index_offset), *footer, *header);
  const auto in_parts = read_in_parts(file, *header, *footer);
  require(in_parts.has_value() == index.has_value(), "parts are refused if all of it is");
  if (!index) return require_refusal(index.error());
  require(*in_parts == index->entries, "parts say what all of it does");
  check_index(file, *header, *footer, *index);
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  const Input input = split(data, size);
  check(input.repaired ? repaired_segment(input.rest)
                       : Bytes(input.rest.begin(), input.rest.end()));
  return 0;
}
