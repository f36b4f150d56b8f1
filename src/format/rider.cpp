// SPDX-License-Identifier: Apache-2.0
#include "format/rider.hpp"

#include "base/try.hpp"
#include "format/checksum.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"

#include <algorithm>

namespace belay::format {
namespace {

constexpr std::string_view kMagic = "BELAYRDR";
constexpr std::size_t kSegmentBytes = 32;
constexpr std::size_t kManifestBytes = 16;
constexpr std::size_t kBlockBytes = kBundledBlockBytes;
constexpr std::size_t kChecksumBytes = 8;

std::uint64_t tables_of(std::uint64_t segments, std::uint64_t manifests) {
  return kRiderFrontBytes + kSegmentBytes * segments + kManifestBytes * manifests + kChecksumBytes;
}

Result<BundledSegment> get_segment(WireReader& reader, Rank ranks) {
  BundledSegment segment;
  segment.id.key.run = reader.field<Run>();
  segment.id.key.version = reader.field<Version>();
  segment.id.rank = reader.field<Rank>();
  segment.block_bytes = reader.field<std::uint32_t>();
  segment.blocks = reader.field<std::uint64_t>();
  if (segment.id.rank >= ranks || segment.block_bytes < kMinBlockBytes ||
      segment.block_bytes > kMaxBlockBytes)
    return fail(Code::corruption, "rider: a segment of rank {} with blocks of {} bytes",
                segment.id.rank, segment.block_bytes);
  return segment;
}

/// Do all parts together fill the rider? Sums are checked one by one: fields may be hostile.
Result<void> check_sizes(const Rider& rider, std::uint64_t rider_bytes) {
  std::uint64_t left = rider_bytes - std::min(rider_bytes, rider.table_bytes());
  const auto take = [&](std::uint64_t bytes) {
    const bool fits = bytes <= left;
    left -= std::min(bytes, left);
    return fits;
  };
  bool fits = true;
  for (const BundledSegment& segment : rider.segments)
    fits =
        fits && segment.blocks <= left / kBlockBytes && take(Rider::blocks_bytes(segment.blocks));
  for (const CarriedManifest& manifest : rider.manifests)
    fits =
        fits && manifest.bytes > 0 && manifest.bytes % kFileAlignment == 0 && take(manifest.bytes);
  if (!fits || rider.bytes() != rider_bytes)
    return fail(Code::corruption, "rider: {} segments and {} manifests do not make {} bytes",
                rider.segments.size(), rider.manifests.size(), rider_bytes);
  return {};
}

}  // namespace

std::optional<std::size_t> Rider::find(const SegmentId& segment) const {
  const auto found = std::lower_bound(
      segments.begin(), segments.end(), segment,
      [](const BundledSegment& each, const SegmentId& id) { return each.id < id; });
  if (found == segments.end() || found->id != segment) return {};
  return static_cast<std::size_t>(found - segments.begin());
}

std::optional<std::size_t> Rider::find_manifest(Rank rank) const {
  for (std::size_t i = 0; i < manifests.size(); ++i)
    if (manifests[i].rank == rank) return i;
  return {};
}

std::uint64_t Rider::table_bytes() const { return tables_of(segments.size(), manifests.size()); }

std::uint64_t Rider::blocks_bytes(std::uint64_t blocks) {
  return kBlockBytes * blocks + kChecksumBytes;
}

std::uint64_t Rider::blocks_offset(std::size_t segment) const {
  std::uint64_t offset = kSegmentHeaderBytes + table_bytes();
  for (std::size_t i = 0; i < segment; ++i) offset += blocks_bytes(segments[i].blocks);
  return offset;
}

std::uint64_t Rider::manifest_offset(std::size_t manifest) const {
  std::uint64_t offset = round_up(blocks_offset(segments.size()), kFileAlignment);
  for (std::size_t i = 0; i < manifest; ++i) offset += manifests[i].bytes;
  return offset;
}

std::uint64_t Rider::bytes() const {
  return manifest_offset(manifests.size()) - kSegmentHeaderBytes;
}

std::vector<std::byte> encode_rider_tables(const Rider& rider) {
  std::vector<std::byte> bytes;
  bytes.reserve(rider.table_bytes());
  WireWriter writer(bytes);
  writer.start(kMagic, kCodecsFormat);
  writer.field(std::uint32_t{0});
  writer.field(std::uint64_t{rider.segments.size()});
  writer.field(std::uint64_t{rider.manifests.size()});
  for (const BundledSegment& segment : rider.segments) {
    writer.pair(segment.id.key.run, segment.id.key.version);
    writer.field(segment.id.rank);
    writer.field(segment.block_bytes);
    writer.field(segment.blocks);
  }
  for (const CarriedManifest& manifest : rider.manifests) {
    writer.field(manifest.rank);
    writer.field(std::uint32_t{0});
    writer.field(manifest.bytes);
  }
  writer.field(checksum64(bytes));
  return bytes;
}

Result<std::uint64_t> decode_rider_front(std::span<const std::byte> front,
                                         std::uint64_t rider_bytes) {
  WireReader reader(front);
  BELAY_ASSIGN(const auto format, get_start(reader, kMagic));
  const bool reserved_is_zero = reader.zeros(4);
  const auto segments = reader.field<std::uint64_t>();
  const auto manifests = reader.field<std::uint64_t>();
  if (reader.failed() || format != kCodecsFormat || !reserved_is_zero)
    return fail(Code::corruption, "rider: its front is damaged");
  if (segments > rider_bytes / kSegmentBytes || manifests > rider_bytes / kManifestBytes ||
      tables_of(segments, manifests) > rider_bytes)
    return fail(Code::corruption, "rider: {} segments and {} manifests do not fit into {} bytes",
                segments, manifests, rider_bytes);
  return tables_of(segments, manifests);
}

Result<Rider> decode_rider_tables(std::span<const std::byte> tables, std::uint64_t rider_bytes,
                                  Rank ranks) {
  const auto front = tables.first(std::min(tables.size(), kRiderFrontBytes));
  BELAY_ASSIGN(const std::uint64_t bytes, decode_rider_front(front, rider_bytes));
  if (tables.size() != bytes) return fail(Code::corruption, "rider: the file was cut");
  WireReader reader(tables);
  (void)reader.bytes(kMagicBytes + 8);
  const auto segments = reader.field<std::uint64_t>();
  const auto manifests = reader.field<std::uint64_t>();
  Rider rider;
  bool in_order = true;
  for (std::uint64_t i = 0; i < segments; ++i) {
    BELAY_ASSIGN(const BundledSegment segment, get_segment(reader, ranks));
    in_order = in_order && (i == 0 || rider.segments.back().id < segment.id);
    rider.segments.push_back(segment);
  }
  for (std::uint64_t i = 0; i < manifests; ++i) {
    const auto rank = reader.field<Rank>();
    in_order = reader.zeros(4) && in_order && rank < ranks &&
               (i == 0 || rider.manifests.back().rank < rank);
    rider.manifests.push_back({rank, reader.field<std::uint64_t>()});
  }
  if (reader.field<std::uint64_t>() != checksum64(tables.first(tables.size() - kChecksumBytes)))
    return damaged("rider");
  if (!in_order) return fail(Code::corruption, "rider: segments or ranks are out of order");
  BELAY_TRY(check_sizes(rider, rider_bytes));
  return rider;
}

Result<void> encode_bundled_blocks(ByteSink& sink, std::uint64_t blocks,
                                   const std::function<BundledBlock()>& next) {
  constexpr std::uint64_t kAtOnce = 1024;
  Checksum64 checksum;
  std::vector<std::byte> bytes;
  for (std::uint64_t left = blocks; left > 0;) {
    const std::uint64_t count = std::min(left, kAtOnce);
    left -= count;
    bytes.clear();
    WireWriter writer(bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      const BundledBlock block = next();
      writer.pair(block.fingerprint.low, block.fingerprint.high);
      writer.field(block.length);
      writer.field(block.entry);
    }
    checksum.update(bytes);
    BELAY_TRY(sink.append(bytes));
  }
  bytes.clear();
  WireWriter(bytes).field(checksum.digest());
  return sink.append(bytes);
}

Result<void> BundledBlocksCheck::take(std::span<const std::byte> bytes,
                                      const std::function<void(const BundledBlock&)>& take_block) {
  checksum_.update(bytes);
  WireReader reader(bytes);
  while (reader.remaining() >= kBundledBlockBytes) {
    BundledBlock block;
    block.fingerprint.low = reader.field<std::uint64_t>();
    block.fingerprint.high = reader.field<std::uint64_t>();
    block.length = reader.field<std::uint32_t>();
    block.entry = reader.field<std::uint32_t>();
    if (block.length == 0 || block.length > block_bytes_ ||
        (block.entry != kNotInBundle && block.entry >= entries_))
      return fail(Code::corruption, "rider: a block is not where it should be");
    take_block(block);
  }
  return {};
}

Result<void> BundledBlocksCheck::finish(std::span<const std::byte> checksum) {
  if (WireReader(checksum).field<std::uint64_t>() != checksum_.digest())
    return damaged("rider: blocks of a segment");
  return {};
}

Result<std::vector<BundledBlock>> decode_bundled_blocks(std::span<const std::byte> bytes,
                                                        const BundledSegment& segment,
                                                        std::uint64_t entries) {
  if (bytes.size() != Rider::blocks_bytes(segment.blocks))
    return fail(Code::corruption, "rider: the file was cut");
  std::vector<BundledBlock> blocks;
  blocks.reserve(segment.blocks);
  BundledBlocksCheck check(segment, entries);
  BELAY_TRY(check.take(bytes.first(bytes.size() - kChecksumBytes),
                       [&](const BundledBlock& block) { blocks.push_back(block); }));
  BELAY_TRY(check.finish(bytes.last(kChecksumBytes)));
  return blocks;
}

}  // namespace belay::format
