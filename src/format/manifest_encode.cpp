// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"

#include "format/checksum.hpp"
#include "format/manifest_layout.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"
#include "format/wire.hpp"

namespace belay::format {
namespace {

/// The checksum is taken as the bytes pass.
class SummingSink {
 public:
  explicit SummingSink(ByteSink& sink) : sink_(&sink) {}
  Result<void> append(std::span<const std::byte> bytes) {
    checksum_.update(bytes);
    return sink_->append(bytes);
  }
  Checksum128::Value checksum() { return checksum_.digest(); }

 private:
  ByteSink* sink_;
  Checksum128 checksum_;
};

struct Sizes {
  std::uint64_t tables_end = 0;
  std::uint64_t arrays = 0;
  std::uint64_t arrays_end = 0;
  std::uint64_t file = 0;
};

Sizes sizes_of(const Manifest& manifest) {
  Sizes sizes;
  sizes.tables_end = kManifestHeaderBytes + manifest.application.size() +
                     kSegmentRefBytes * manifest.segments.size();
  for (const RegionRecord& region : manifest.regions)
    sizes.tables_end += kRegionFixedBytes + 8 * region.shape.dimensions() + region.name.size() +
                        region.type.name.size();
  sizes.arrays = round_up(sizes.tables_end, kArrayAlignment);
  sizes.arrays_end =
      sizes.arrays + (sizeof(Fingerprint) + 1) * std::uint64_t{manifest.fingerprints.size()};
  sizes.file = round_up(sizes.arrays_end + kManifestFooterBytes, kFileAlignment);
  return sizes;
}

void put_level(WireWriter& writer, const Manifest& manifest) {
  const Level& level = manifest.level;
  const std::array numbers = {level.kind == Level::Kind::replicas ? level.copies : level.members,
                              level.shards};
  writer.field(static_cast<std::uint8_t>(level.kind));
  for (const std::uint8_t number : numbers) writer.field(number);
  writer.field(static_cast<std::uint8_t>((manifest.global ? kManifestGlobal : 0) |
                                         (manifest.dump ? kManifestDump : 0)));
}

void put_manifest_header(WireWriter& writer, const Manifest& manifest, std::uint64_t file_bytes) {
  writer.start(kManifestMagic, format_of(manifest));
  writer.field(manifest.block_bytes);
  writer.field(file_bytes);
  put_origin(writer, manifest.origin);
  writer.field(manifest.parent.run);
  writer.field(manifest.parent.version);
  writer.field(manifest.time_ns);
  for (const auto field : kLedgerFields) writer.field(manifest.ledger.*field);
  writer.field(std::uint64_t{manifest.fingerprints.size()});
  writer.field(static_cast<std::uint32_t>(manifest.regions.size()));
  writer.field(static_cast<std::uint32_t>(manifest.segments.size()));
  writer.field(static_cast<std::uint8_t>(manifest.hash));
  writer.length(manifest.application);
  put_level(writer, manifest);
  writer.zeros(kManifestReservedBytes);
}

void put_segment_ref(WireWriter& writer, const SegmentRef& segment) {
  writer.field(segment.id.key.run);
  writer.field(segment.id.key.version);
  writer.field(segment.file_bytes);
  writer.field(segment.id.rank);
  writer.field(segment.copies);
  writer.field(segment.nodes);
  writer.field(segment.shards);
}

void put_region(WireWriter& writer, const RegionRecord& region) {
  writer.field(region.bytes);
  writer.field(region.type.bytes);
  writer.field(static_cast<std::uint8_t>(region.type.kind));
  writer.field(static_cast<std::uint8_t>(region.shape.dimensions()));
  writer.length(region.name);
  writer.length(region.type.name);
  for (const std::uint64_t extent : region.shape.extents()) writer.field(extent);
  writer.text(region.name);
  writer.text(region.type.name);
}

}  // namespace

Result<void> encode_manifest(const Manifest& manifest, ByteSink& sink) {
  BELAY_TRY(within("manifest", check_manifest(Code::invalid_argument, manifest)));
  if (manifest.regions.size() > UINT32_MAX || manifest.segments.size() > UINT32_MAX)
    return fail(Code::invalid_argument, "manifest: {} regions or {} segments are too many",
                manifest.regions.size(), manifest.segments.size());
  const Sizes sizes = sizes_of(manifest);

  std::vector<std::byte> buffer;
  buffer.reserve(sizes.arrays);
  WireWriter writer(buffer);
  put_manifest_header(writer, manifest, sizes.file);
  writer.text(manifest.application);
  for (const SegmentRef& segment : manifest.segments) put_segment_ref(writer, segment);
  for (const RegionRecord& region : manifest.regions) put_region(writer, region);
  writer.zeros(sizes.arrays - sizes.tables_end);

  SummingSink summed(sink);
  BELAY_TRY(summed.append(buffer));
  BELAY_TRY(summed.append(std::as_bytes(std::span(manifest.fingerprints))));
  BELAY_TRY(summed.append(std::as_bytes(std::span(manifest.holders))));
  buffer.clear();
  writer.zeros(sizes.file - kManifestFooterBytes - sizes.arrays_end);
  writer.text(kManifestFooterMagic);
  writer.field(sizes.file);
  BELAY_TRY(summed.append(buffer));
  const auto checksum = summed.checksum();
  buffer.clear();
  writer.pair(checksum.low, checksum.high);
  return sink.append(buffer);
}

Result<std::vector<std::byte>> encode_manifest(const Manifest& manifest) {
  VectorSink sink;
  sink.bytes().reserve(sizes_of(manifest).file);
  BELAY_TRY(encode_manifest(manifest, sink));
  return std::move(sink.bytes());
}

}  // namespace belay::format
