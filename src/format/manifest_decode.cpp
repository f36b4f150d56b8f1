// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"

#include "format/checksum.hpp"
#include "format/manifest_layout.hpp"
#include "format/manifest_stream.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"

namespace belay::format {
namespace {

/// What the header says about the parts that follow it.
struct Counts {
  std::uint32_t format = 0;
  std::uint64_t blocks = 0;
  std::uint32_t regions = 0;
  std::uint32_t segments = 0;
  std::uint8_t application_bytes = 0;
};

/// Sizes and checksum: after this, bytes may be wrong only by intent.
Result<void> check_envelope(std::span<const std::byte> file) {
  BELAY_TRY(check_manifest_front(file, file.size()));
  return check_footer(file.last(kManifestFooterBytes), file.size(),
                      Checksum128::of(file.first(file.size() - kManifestChecksumBytes)));
}

Result<void> get_level(WireReader& reader, Manifest& manifest) {
  const auto kind = reader.field<std::uint8_t>();
  const auto first = reader.field<std::uint8_t>();
  const auto second = reader.field<std::uint8_t>();
  const auto flags = reader.field<std::uint8_t>();
  Level& level = manifest.level;
  if (kind == static_cast<std::uint8_t>(Level::Kind::replicas))
    level = Level::replicas(first);
  else if (kind == static_cast<std::uint8_t>(Level::Kind::erasure))
    level = Level::erasure(first, second);
  const bool has_second = level.has_parity();
  if (static_cast<std::uint8_t>(level.kind) != kind || (kind == 0 && first != 0) ||
      (!has_second && second != 0) || (has_second && (first == 0 || second == 0)))
    return fail(Code::corruption, "level {} {} {} is none", kind, first, second);
  if ((flags & ~(kManifestGlobal | kManifestDump)) != 0)
    return fail(Code::corruption, "flags {:#x} are unknown", flags);
  manifest.global = (flags & kManifestGlobal) != 0;
  manifest.dump = (flags & kManifestDump) != 0;
  return {};
}

Result<Counts> get_manifest_header(WireReader& reader, Manifest& manifest) {
  Counts counts;
  BELAY_ASSIGN(counts.format, get_start(reader, kManifestMagic));
  manifest.block_bytes = reader.field<std::uint32_t>();
  reader.bytes(sizeof(std::uint64_t));  // the file's size
  manifest.origin = get_origin(reader);
  manifest.parent.run = reader.field<Run>();
  manifest.parent.version = reader.field<Version>();
  manifest.time_ns = reader.field<std::int64_t>();
  for (const auto field : kLedgerFields) manifest.ledger.*field = reader.field<std::uint64_t>();
  counts.blocks = reader.field<std::uint64_t>();
  counts.regions = reader.field<std::uint32_t>();
  counts.segments = reader.field<std::uint32_t>();
  manifest.hash = static_cast<HashKind>(reader.field<std::uint8_t>());
  counts.application_bytes = reader.field<std::uint8_t>();
  BELAY_TRY(get_level(reader, manifest));
  if (!reader.zeros(kManifestReservedBytes))
    return fail(Code::corruption, "reserved bytes of the header are not zero");
  return counts;
}

Result<void> get_segments(WireReader& reader, std::size_t count, Manifest& manifest) {
  if (count > reader.remaining() / kSegmentRefBytes)
    return fail(Code::corruption, "{} segments do not fit into the file", count);
  manifest.segments.resize(count);
  for (SegmentRef& segment : manifest.segments) {
    segment.id.key.run = reader.field<Run>();
    segment.id.key.version = reader.field<Version>();
    segment.file_bytes = reader.field<std::uint64_t>();
    segment.id.rank = reader.field<Rank>();
    segment.copies = reader.field<std::uint16_t>();
    segment.nodes = reader.field<std::uint8_t>();
    segment.shards = reader.field<std::uint8_t>();
  }
  return {};
}

Result<RegionRecord> get_region(WireReader& reader) {
  RegionRecord region;
  region.bytes = reader.field<std::uint64_t>();
  region.type.bytes = reader.field<std::uint32_t>();
  region.type.kind = static_cast<ElementKind>(reader.field<std::uint8_t>());
  const auto dimensions = reader.field<std::uint8_t>();
  const auto name_bytes = reader.field<std::uint8_t>();
  const auto type_name_bytes = reader.field<std::uint8_t>();
  std::vector<std::uint64_t> extents(dimensions);
  for (std::uint64_t& extent : extents) extent = reader.field<std::uint64_t>();
  region.shape = Shape(std::move(extents));
  region.name = reader.text(name_bytes);
  region.type.name = reader.text(type_name_bytes);
  if (reader.failed()) return fail(Code::corruption, "the list of regions is cut");
  return region;
}

Result<void> get_regions(WireReader& reader, std::size_t count, Manifest& manifest) {
  if (count > reader.remaining() / kRegionFixedBytes)
    return fail(Code::corruption, "{} regions do not fit into the file", count);
  manifest.regions.reserve(count);
  std::uint64_t first_block = 0;
  for (std::size_t i = 0; i < count; ++i) {
    BELAY_ASSIGN(RegionRecord region, get_region(reader));
    region.first_block = first_block;
    // A sum of hostile sizes may wrap; check_manifest refuses each such size by itself.
    first_block += manifest.blocks_of(region);
    manifest.regions.push_back(std::move(region));
  }
  return {};
}

/// Block tables where they lie in the file.
struct Tables {
  std::span<const std::byte> fingerprints;
  std::span<const std::byte> holders;
};

/// All but the block tables, before which the reader stands after it.
Result<Manifest> get_head(WireReader& reader, Counts& counts) {
  Manifest manifest;
  BELAY_ASSIGN(counts, get_manifest_header(reader, manifest));
  // The sizes of regions mean nothing before the block size is known to be one.
  BELAY_TRY(check_header(Code::corruption, manifest.origin, manifest.hash, manifest.block_bytes));
  manifest.application = reader.text(counts.application_bytes);
  BELAY_TRY(get_segments(reader, counts.segments, manifest));
  BELAY_TRY(get_regions(reader, counts.regions, manifest));
  const std::size_t padding =
      static_cast<std::size_t>(round_up(reader.offset(), kArrayAlignment)) - reader.offset();
  if (!reader.zeros(padding)) return fail(Code::corruption, "padding before blocks is not zero");
  return manifest;
}

/// What the tables take must be there, and nothing else but less than a page of zeros.
Result<void> check_room(std::uint64_t bytes, std::uint64_t blocks) {
  if (blocks > bytes / kManifestBlockBytes)
    return fail(Code::corruption, "{} blocks do not fit into the file", blocks);
  if (bytes - blocks * kManifestBlockBytes >= kFileAlignment)
    return fail(Code::corruption, "padding after blocks is too long");
  return {};
}

Result<void> check_format(const Counts& counts, const Manifest& head) {
  if (counts.format == format_of(head)) return {};
  return fail(Code::corruption, "it is of format {}, but what it says is of format {}",
              counts.format, format_of(head));
}

/// All but the block tables, of which it says where they are.
Result<Manifest> decode(std::span<const std::byte> file, Tables& tables) {
  BELAY_TRY(check_envelope(file));
  WireReader reader(file.first(file.size() - kManifestFooterBytes));
  Counts counts;
  BELAY_ASSIGN(Manifest manifest, get_head(reader, counts));
  BELAY_TRY(check_room(reader.remaining(), counts.blocks));
  tables.fingerprints = reader.bytes(counts.blocks * sizeof(Fingerprint));
  tables.holders = reader.bytes(counts.blocks);
  if (!reader.zeros(reader.remaining()))
    return fail(Code::corruption, "padding after blocks is not zero");
  BELAY_TRY(check_manifest(Code::corruption, manifest, tables.holders));
  BELAY_TRY(check_format(counts, manifest));
  return manifest;
}

}  // namespace

Result<void> check_manifest_front(std::span<const std::byte> front, std::uint64_t file_bytes) {
  WireReader header(front);
  BELAY_TRY(get_start(header, kManifestMagic));
  header.bytes(sizeof(std::uint32_t));  // block_bytes
  if (header.field<std::uint64_t>() != file_bytes || file_bytes % kFileAlignment != 0)
    return fail(Code::corruption, "{} bytes: the file was cut or extended", file_bytes);
  return {};
}

Result<std::uint64_t> manifest_front_bytes(std::span<const std::byte> header,
                                           std::uint64_t file_bytes) {
  BELAY_TRY(check_manifest_front(header, file_bytes));
  WireReader reader(header);
  Manifest ignored;
  BELAY_ASSIGN(const Counts counts, get_manifest_header(reader, ignored));
  if (file_bytes < kManifestHeaderBytes + kManifestFooterBytes ||
      counts.blocks >
          (file_bytes - kManifestHeaderBytes - kManifestFooterBytes) / kManifestBlockBytes)
    return fail(Code::corruption, "manifest: {} blocks do not fit into the file", counts.blocks);
  return file_bytes - kManifestFooterBytes - counts.blocks * kManifestBlockBytes;
}

Result<ManifestHead> decode_manifest_head(std::span<const std::byte> front,
                                          std::uint64_t file_bytes) {
  BELAY_TRY(check_manifest_front(front, file_bytes));
  WireReader reader(front);
  Counts counts;
  ManifestHead decoded;
  BELAY_ASSIGN(decoded.head, within("manifest", get_head(reader, counts)));
  decoded.blocks = counts.blocks;
  decoded.fingerprints_offset = reader.offset();
  if (decoded.fingerprints_offset > file_bytes - kManifestFooterBytes)
    return fail(Code::corruption, "manifest: the file was cut");
  BELAY_TRY(within(
      "manifest",
      check_room(file_bytes - kManifestFooterBytes - decoded.fingerprints_offset, decoded.blocks)));
  BELAY_TRY(
      within("manifest", check_manifest_head(Code::corruption, decoded.head, decoded.blocks)));
  BELAY_TRY(within("manifest", check_format(counts, decoded.head)));
  return decoded;
}

Result<Manifest> decode_manifest(std::span<const std::byte> file) {
  Tables tables;
  BELAY_ASSIGN(Manifest manifest, within("manifest", decode(file, tables)));
  manifest.fingerprints.resize(tables.holders.size());
  manifest.holders.resize(tables.holders.size());
  if (tables.holders.empty()) return manifest;
  std::memcpy(manifest.fingerprints.data(), tables.fingerprints.data(), tables.fingerprints.size());
  std::memcpy(manifest.holders.data(), tables.holders.data(), tables.holders.size());
  return manifest;
}

ManifestView::ManifestView(const Manifest& manifest)
    : fingerprints_(std::as_bytes(std::span(manifest.fingerprints))),
      holders_(std::as_bytes(std::span(manifest.holders))) {
  head_ = manifest;
  head_.fingerprints = {};
  head_.holders = {};
}

Fingerprint ManifestView::fingerprint(std::uint64_t block) const {
  Fingerprint name;
  std::memcpy(&name, fingerprints_.data() + block * sizeof(name), sizeof(name));
  return name;
}

Result<ManifestView> view_manifest(std::span<const std::byte> file) {
  Tables tables;
  ManifestView view;
  BELAY_ASSIGN(view.head_, within("manifest", decode(file, tables)));
  view.fingerprints_ = tables.fingerprints;
  view.holders_ = tables.holders;
  return view;
}

}  // namespace belay::format
