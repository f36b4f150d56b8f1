// SPDX-License-Identifier: Apache-2.0
#include "inspect/segment_outline.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "inspect/source_files.hpp"
#include "os/memory.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace belay::inspect {
namespace {

Result<os::AlignedMemory> read_pages(os::File& file, std::uint64_t begin, std::uint64_t end) {
  BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(end - begin));
  BELAY_ASSIGN(const std::size_t got, file.read(begin, memory.bytes().first(end - begin)));
  if (begin + got < end) return fail(Code::corruption, "ends at byte {}", begin + got);
  return memory;
}

}  // namespace

SegmentOutline SegmentOutline::complete() const {
  return with_only(std::vector<bool>(entries.size(), true));
}

SegmentOutline SegmentOutline::with_only(std::vector<bool> wanted) const {
  SegmentOutline made{header, entries, std::move(wanted)};
  made.header.partial =
      std::find(made.present.begin(), made.present.end(), false) != made.present.end();
  return made;
}

std::vector<format::Extent> SegmentOutline::extents() const {
  std::vector<format::Extent> extents;
  std::uint64_t offset = format::kSegmentHeaderBytes;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto codec = present[i] ? CodecId::raw : CodecId::absent;
    if (extents.empty() || extents.back().codec != codec)
      extents.push_back({.offset = offset, .first_entry = i, .codec = codec});
    format::Extent& extent = extents.back();
    ++extent.entries;
    extent.raw_bytes += entries[i].length;
    if (!present[i]) continue;
    extent.encoded_bytes += entries[i].length;
    offset += entries[i].length;
  }
  return extents;
}

std::uint64_t SegmentOutline::file_bytes() const {
  const auto all = extents();
  const std::uint64_t payload =
      std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const auto& e) { return sum + e.encoded_bytes; });
  return format::segment_file_bytes(payload, all.size(), entries.size());
}

namespace {

/// From footer and index of a file that has, or should have, this header.
Result<SegmentOutline> read_index(os::File& file, const format::SegmentHeader& header) {
  BELAY_ASSIGN(const std::uint64_t end, file.size());
  if (end < format::kFileAlignment || end % format::kFileAlignment != 0)
    return fail(Code::corruption, "no segment has {} bytes", end);
  BELAY_ASSIGN(const auto back, read_pages(file, end - format::kFileAlignment, end));
  const auto footer_bytes =
      back.bytes().first(format::kFileAlignment).last(format::kSegmentFooterBytes);
  BELAY_ASSIGN(const auto footer, format::decode_segment_footer(footer_bytes, end));
  const std::uint64_t begin = footer.index_offset / format::kFileAlignment * format::kFileAlignment;
  BELAY_ASSIGN(const auto pages, read_pages(file, begin, end));
  const auto bytes = pages.bytes().subspan(footer.index_offset - begin,
                                           end - format::kSegmentFooterBytes - footer.index_offset);
  BELAY_ASSIGN(auto index, format::decode_segment_index(bytes, footer, header));
  SegmentOutline outline{header, std::move(index.entries), {}};
  outline.present.resize(outline.entries.size());
  for (const format::Extent& extent : index.extents)
    for (std::uint64_t i = 0; i < extent.entries; ++i)
      outline.present[extent.first_entry + i] = extent.codec != CodecId::absent;
  return outline;
}

}  // namespace

Result<SegmentOutline> read_outline(const StoreView& view, const BlockSource& source) {
  // Whatever is wrong with it outside of its blocks is found here.
  BELAY_ASSIGN(auto opened, open_source(view, source, view.identities().front().store, {}));
  return read_index(opened.file(), opened.header());
}

std::optional<SegmentOutline> read_damaged_copy(const StoreView& view, const BlockSource& source,
                                                const SegmentOutline& segment) {
  const auto file = view.tier(source.node).open(format::copy_name(source.id));
  if (!file) return {};
  for (const bool partial : {false, true}) {
    format::SegmentHeader header = segment.header;
    header.partial = partial;
    const auto outline = read_index(**file, header);
    if (outline && outline->entries == segment.entries) return *outline;
  }
  const auto front = read_pages(**file, 0, format::kFileAlignment);
  if (!front) return {};
  const auto bytes = front->bytes().first(format::kSegmentHeaderBytes);
  const auto expected = format::encode_segment_header(segment.complete().header);
  if (std::equal(expected.begin(), expected.end(), bytes.begin())) return segment.complete();
  return {};
}

std::optional<SegmentOutline> outline_of(const Manifest& manifest) {
  const SegmentId own{manifest.origin.key, manifest.origin.rank};
  const auto found = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                  [&](const SegmentRef& segment) { return segment.id == own; });
  if (found == manifest.segments.end()) return {};
  SegmentOutline outline{{manifest.origin, manifest.hash, manifest.block_bytes}, {}, {}};
  std::unordered_set<BlockName, BlockNameHash> seen;
  // A writer puts each block once, in the order of the manifest.
  for_each_block(manifest, static_cast<std::size_t>(found - manifest.segments.begin()),
                 [&](const RegionRecord&, const BlockName& name) {
                   if (seen.insert(name).second)
                     outline.entries.push_back({name.fingerprint, name.length});
                 });
  return outline.complete();
}

}  // namespace belay::inspect
