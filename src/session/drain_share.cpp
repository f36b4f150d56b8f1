// SPDX-License-Identifier: Apache-2.0
#include "session/drain_share.hpp"

#include "aggregate/bundle_writer.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "format/wire.hpp"

#include <algorithm>

namespace belay::session {

std::uint64_t ShareHead::blocks() const {
  std::uint64_t blocks = 0;
  for (const SharedSegment& segment : segments) blocks += segment.blocks;
  return blocks;
}

std::uint64_t ShareHead::planning_bytes() const {
  return aggregate::planning_bytes(manifest_bytes, blocks());
}

std::uint64_t ShareHead::offset_of(std::size_t segment, std::uint64_t block) const {
  for (std::size_t i = 0; i < segment; ++i) block += segments[i].blocks;
  return manifest_bytes + block * SharedBlock::kBytes;
}

std::vector<std::byte> ShareHead::encode() const {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(manifest_bytes);
  for (const SharedSegment& segment : segments) {
    writer.pair(segment.id.key.run, segment.id.key.version);
    writer.field(segment.id.rank);
    writer.field(segment.place);
    writer.field(segment.block_bytes);
    writer.field(segment.blocks);
  }
  return bytes;
}

Result<ShareHead> ShareHead::decode(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  ShareHead head;
  head.manifest_bytes = reader.field<std::uint64_t>();
  while (reader.remaining() > 0 && !reader.failed()) {
    SharedSegment& segment = head.segments.emplace_back();
    segment.id.key.run = reader.field<Run>();
    segment.id.key.version = reader.field<Version>();
    segment.id.rank = reader.field<Rank>();
    segment.place = reader.field<catalog::Whereabouts::Place>();
    segment.block_bytes = reader.field<std::uint32_t>();
    segment.blocks = reader.field<std::uint64_t>();
  }
  if (reader.failed())
    return fail(Code::corruption, "what a rank told of its segments is cut short");
  // Sums of these are far from overflow.
  constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 40;
  bool sane = head.manifest_bytes <= kMostBlocks;
  for (std::size_t i = 0; i < head.segments.size(); ++i) {
    const SharedSegment& segment = head.segments[i];
    sane = sane && segment.blocks <= kMostBlocks && segment.block_bytes >= kMinBlockBytes &&
           segment.block_bytes <= kMaxBlockBytes &&
           (i == 0 || head.segments[i - 1].id < segment.id);
  }
  if (!sane) return fail(Code::corruption, "what a rank told of its segments makes no sense");
  return head;
}

void decode_blocks(std::span<const std::byte> bytes,
                   const std::function<void(const SharedBlock&)>& take) {
  format::WireReader reader(bytes);
  while (reader.remaining() >= SharedBlock::kBytes) {
    SharedBlock block;
    block.stored.fingerprint.low = reader.field<std::uint64_t>();
    block.stored.fingerprint.high = reader.field<std::uint64_t>();
    block.stored.length = reader.field<std::uint32_t>();
    block.stored.offset = reader.field<std::uint64_t>();
    block.needed = reader.field<std::uint8_t>() != 0;
    block.region = reader.field<std::uint32_t>();
    take(block);
  }
}

OwnShare::OwnShare(std::uint64_t manifest_bytes, ReadManifest manifest,
                   std::vector<Segment> segments)
    : manifest_(std::move(manifest)), segments_(std::move(segments)) {
  head_.manifest_bytes = manifest_bytes;
  for (const Segment& segment : segments_) head_.segments.push_back(segment.head);
}

Result<std::vector<std::byte>> OwnShare::part(std::uint64_t begin, std::uint64_t most,
                                              store::PageReader& reader) {
  std::vector<std::byte> part;
  if (begin < head_.manifest_bytes) {
    part.resize(std::min(most, head_.manifest_bytes - begin));
    BELAY_TRY(manifest_(begin, part, reader));
    return part;
  }
  std::uint64_t skip = (begin - head_.manifest_bytes) / SharedBlock::kBytes;
  std::uint64_t left = std::max<std::uint64_t>(most / SharedBlock::kBytes, 1);
  part.reserve(std::min(left, head_.blocks() - std::min(head_.blocks(), skip)) *
               SharedBlock::kBytes);
  for (Segment& segment : segments_) {
    const std::uint64_t first = std::min(skip, segment.head.blocks);
    const std::uint64_t count = std::min(left, segment.head.blocks - first);
    if (count > 0) {
      failed_ = segment.head.id;
      BELAY_TRY(add_blocks(segment, first, count, reader, part));
      failed_.reset();
    }
    skip -= first;
    left -= count;
  }
  return part;
}

Result<void> OwnShare::add_blocks(Segment& segment, std::uint64_t first, std::uint64_t count,
                                  store::PageReader& reader, std::vector<std::byte>& part) {
  const auto& runs = segment.runs;
  auto run = std::upper_bound(
      runs.begin(), runs.end(), first,
      [](std::uint64_t block, const RegionRun& each) { return block < each.first; });
  format::WireWriter writer(part);
  std::uint64_t number = first;
  return segment.tell(first, count, reader, [&](const store::StoredBlock& block, bool /*present*/) {
    while (run != runs.end() && run->first <= number) ++run;
    writer.pair(block.fingerprint.low, block.fingerprint.high);
    writer.field(block.length);
    writer.field(block.offset);
    writer.field(static_cast<std::uint8_t>(segment.needed[number++]));
    writer.field(run == runs.begin() ? aggregate::kNoRegion : std::prev(run)->region);
  });
}

Result<void> OwnShare::read(const SegmentId& id, std::uint64_t begin, std::span<std::byte> into,
                            store::PageReader& reader) {
  for (Segment& segment : segments_)
    if (segment.head.id == id) return segment.read(begin, into, reader);
  return fail(Code::not_found, "{} is not looked after here", format::segment_name(id));
}

}  // namespace belay::session
