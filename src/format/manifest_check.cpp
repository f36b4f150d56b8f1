// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "format/manifest_layout.hpp"
#include "format/manifest_stream.hpp"
#include "format/wire.hpp"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace belay::format {
namespace {

Result<void> check_text(Code code, std::string_view what, std::string_view name) {
  if (auto valid = check_name(what, name); !valid) return fail(code, "{}", valid.error().message());
  return {};
}

Result<void> check_elsewhere(Code code, const SegmentRef& segment) {
  if (segment.id.key == VersionKey{}) return fail(code, "blocks are elsewhere, but of no version");
  if (segment.file_bytes != 0 || segment.copies != 0)
    return fail(code, "blocks of run {}, version {} are elsewhere: in {} bytes and {} copies?",
                segment.id.key.run, segment.id.key.version, segment.file_bytes, segment.copies);
  return {};
}

/// `held` are the versions of which there are blocks.
Result<void> check_other(Code code, const Manifest& manifest, const SegmentId& id,
                         const std::set<VersionKey>& held) {
  if (id.rank == manifest.origin.rank || id.rank == kAnyRank)
    return fail(code, "segment {}-{}-{} comes after those of other ranks", id.key.run,
                id.key.version, id.rank);
  if (id.rank >= manifest.origin.ranks)
    return fail(code, "it counts on a segment of rank {}, of {} ranks", id.rank,
                manifest.origin.ranks);
  if (!held.contains(id.key))
    return fail(code, "it counts on segment {}-{}-{}, but has no blocks of that version",
                id.key.run, id.key.version, id.rank);
  return {};
}

Result<void> check_segments(Code code, const Manifest& manifest) {
  const std::size_t holding = manifest.holding_segments();
  if (holding > kMaxSegments)
    return fail(code, "{} segments hold its blocks, of at most {}", holding, kMaxSegments);
  std::set<SegmentId> seen;
  std::set<VersionKey> held;
  for (std::size_t i = 0; i < manifest.segments.size(); ++i) {
    const SegmentRef& segment = manifest.segments[i];
    if (!seen.insert(segment.id).second)
      return fail(code, "segment {}-{}-{} is listed twice", segment.id.key.run,
                  segment.id.key.version, segment.id.rank);
    if (i >= holding) {
      BELAY_TRY(check_other(code, manifest, segment.id, held));
      continue;
    }
    held.insert(segment.id.key);
    if (segment.id.rank == kAnyRank) BELAY_TRY(check_elsewhere(code, segment));
  }
  return {};
}

Result<void> check_region(Code code, const RegionRecord& region) {
  BELAY_TRY(check_text(code, "region", region.name));
  if (!region.type.name.empty()) BELAY_TRY(check_text(code, "type", region.type.name));
  if (region.type.kind > ElementKind::serialized || region.type.bytes == 0)
    return fail(code, "region {}: elements of kind {} and {} bytes do not exist", region.name,
                static_cast<unsigned>(region.type.kind), region.type.bytes);
  if (region.shape.dimensions() > kMaxDimensions)
    return fail(code, "region {}: {} dimensions, of at most {}", region.name,
                region.shape.dimensions(), kMaxDimensions);
  return {};
}

/// Regions follow each other in the block arrays and cover them exactly.
Result<void> check_regions(Code code, const Manifest& manifest, std::uint64_t blocks) {
  std::uint64_t covered = 0;
  std::unordered_set<std::string_view> names;
  for (const RegionRecord& region : manifest.regions) {
    BELAY_TRY(check_region(code, region));
    if (!names.insert(region.name).second)
      return fail(code, "region {} is listed twice", region.name);
    // blocks_of() adds before it divides, which hostile sizes would overflow.
    if (region.bytes / manifest.block_bytes > blocks ||
        manifest.blocks_of(region) > blocks - covered || region.first_block != covered)
      return fail(code, "region {}: its {} bytes are not those of the blocks from {} of {}",
                  region.name, region.bytes, covered, blocks);
    covered += manifest.blocks_of(region);
  }
  if (covered != blocks)
    return fail(code, "regions have {} blocks, but {} are listed", covered, blocks);
  return {};
}

}  // namespace

Result<void> check_holders(Code code, const Manifest& head, std::span<const std::byte> holders) {
  // A loop without an exit is one that compilers turn into vector instructions.
  unsigned char highest = 0;
  for (const std::byte holder : holders)
    highest = std::max(highest, std::to_integer<unsigned char>(holder));
  const std::size_t holding = head.holding_segments();
  if (!holders.empty() && highest >= holding)
    return fail(code, "blocks are held by segment {} of {}", highest, holding);
  return {};
}

Result<void> check_footer(std::span<const std::byte> bytes, std::uint64_t file_bytes,
                          const Checksum128::Value& checksum) {
  WireReader footer(bytes);
  const bool magic_fits = footer.text(kMagicBytes) == kManifestFooterMagic;
  if (!magic_fits || footer.field<std::uint64_t>() != file_bytes)
    return fail(Code::corruption, "its footer is not that of a manifest of {} bytes", file_bytes);
  Checksum128::Value stored;
  stored.low = footer.field<std::uint64_t>();
  stored.high = footer.field<std::uint64_t>();
  if (stored != checksum) return damaged("contents");
  return {};
}

std::uint32_t format_of(const Manifest& manifest) {
  if (manifest.level != Level{} || manifest.global || manifest.dump) return kCopiesFormat;
  const auto is_of_the_first = [&](const SegmentRef& segment) {
    return segment.id.rank == manifest.origin.rank && segment.copies == 0 && segment.nodes == 0 &&
           segment.shards == 0;
  };
  return std::all_of(manifest.segments.begin(), manifest.segments.end(), is_of_the_first)
             ? kFirstFormat
             : kCopiesFormat;
}

Result<void> check_manifest(Code code, const Manifest& manifest) {
  if (manifest.holders.size() != manifest.fingerprints.size())
    return fail(code, "{} holders for {} blocks", manifest.holders.size(),
                manifest.fingerprints.size());
  return check_manifest(code, manifest, std::as_bytes(std::span(manifest.holders)));
}

Result<void> check_manifest(Code code, const Manifest& head, std::span<const std::byte> holders) {
  BELAY_TRY(check_manifest_head(code, head, holders.size()));
  return check_holders(code, head, holders);
}

Result<void> check_manifest_head(Code code, const Manifest& head, std::uint64_t blocks) {
  BELAY_TRY(check_header(code, head.origin, head.hash, head.block_bytes));
  BELAY_TRY(check_text(code, "application", head.application));
  BELAY_TRY(check_segments(code, head));
  return check_regions(code, head, blocks);
}

void ManifestCheck::take(std::span<const std::byte> bytes) {
  taken_bytes_ += bytes.size();
  // The end is kept back: the checksum does not cover itself.
  if (bytes.size() >= kManifestFooterBytes) {
    checksum_.update(end_);
    const auto covered = bytes.first(bytes.size() - kManifestFooterBytes);
    checksum_.update(covered);
    end_.assign(bytes.begin() + static_cast<std::ptrdiff_t>(covered.size()), bytes.end());
    return;
  }
  end_.insert(end_.end(), bytes.begin(), bytes.end());
  if (end_.size() <= kManifestFooterBytes) return;
  const auto over = static_cast<std::ptrdiff_t>(end_.size() - kManifestFooterBytes);
  checksum_.update(std::span(end_).first(static_cast<std::size_t>(over)));
  end_.erase(end_.begin(), end_.begin() + over);
}

Result<void> ManifestCheck::finish() {
  if (end_.size() < kManifestFooterBytes)
    return fail(Code::corruption, "manifest: {} bytes: the file was cut", taken_bytes_);
  checksum_.update(std::span(end_).first(kManifestFooterBytes - kManifestChecksumBytes));
  return within("manifest", check_footer(end_, taken_bytes_, checksum_.digest()));
}

}  // namespace belay::format
