// SPDX-License-Identifier: Apache-2.0
#include "files/region_source.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "os/errno.hpp"

#include <algorithm>

namespace belay::files {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

/// Zeros need not be written: the file was made of them.
bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

Result<void> write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (is_zero(bytes)) return {};
  while (!bytes.empty()) {
    const auto done = os::retry([&] {
      return ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (done < 0) return Unexpected(os::error_of(errno, "write", "a temporary file"));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

}  // namespace

Result<const inspect::PartView*> part_of(const inspect::VersionView& version) {
  if (version.parts.empty() || !version.parts.front().manifest)
    return fail(Code::corruption, "the manifest of version {} cannot be read; see `belay check`",
                version.key.version);
  if (!is_packed(version))
    return fail(Code::invalid_argument,
                "version {} was not made by `belay pack`; `belay extract` writes its regions",
                version.key.version);
  return &version.parts.front();
}

bool is_packed(const inspect::VersionView& version) {
  const Manifest* const manifest = version.any_manifest();
  return manifest != nullptr && version.ranks == 1 && manifest->application == kApplication;
}

Result<void> RegionSource::open() {
  auto all = inspect::PartReader::open(view_, version_, part_, "");
  if (all) {
    all_.emplace(*std::move(all));
    index(all_->manifest());
    return {};
  }
  BELAY_ASSIGN(manifest_, view_.load(part_, version_.key));
  index(manifest_);
  return {};
}

void RegionSource::index(const Manifest& manifest) {
  for (const RegionRecord& region : manifest.regions) regions_.emplace(region.name, &region);
}

Result<const RegionRecord*> RegionSource::find(const PackedRegion& packed) const {
  const auto found = regions_.find(packed.region);
  if (found == regions_.end())
    return fail(Code::corruption, "the version has no region {}", in_quotes(packed.region));
  if (found->second->bytes != bytes_of(packed.ranges))
    return fail(Code::corruption, "region {} has {} bytes, but the table speaks of {}",
                in_quotes(packed.region), found->second->bytes, bytes_of(packed.ranges));
  return found->second;
}

Result<ArrayType> RegionSource::array_of(const PackedRegion& packed) const {
  BELAY_ASSIGN(const RegionRecord* region, find(packed));
  return ArrayType{region->type, region->shape};
}

Result<void> RegionSource::select(const PackedRegion& packed) {
  BELAY_ASSIGN(region_, find(packed));
  if (all_) return {};
  one_.reset();
  auto reader = inspect::PartReader::open(view_, version_, part_, packed.region);
  if (!reader)
    return fail(Code::corruption, "{} is lost: {}", in_quotes(packed.region),
                reader.error().message());
  one_.emplace(*std::move(reader));
  return {};
}

Result<void> RegionSource::read(const PackedRegion& packed, const TakeBytes& take) {
  BELAY_TRY(select(packed));
  buffer_.resize(std::min(region_->bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < region_->bytes;) {
    const auto piece =
        std::span(buffer_).first(std::min<std::uint64_t>(buffer_.size(), region_->bytes - at));
    BELAY_TRY((all_ ? *all_ : *one_).read(*region_, at, piece));
    BELAY_TRY(take(piece));
    at += piece.size();
  }
  return {};
}

Result<void> RegionSource::put(const PackedRegion& packed, int descriptor,
                               const std::function<void(std::uint64_t bytes)>& done) {
  // Ranges may be small and many: they are read together, and written one by one.
  auto range = packed.ranges.begin();
  std::uint64_t used = 0;  // of the range
  return read(packed, [&](std::span<const std::byte> piece) -> Result<void> {
    const std::uint64_t bytes = piece.size();
    while (!piece.empty()) {
      const std::uint64_t length = std::min<std::uint64_t>(range->length - used, piece.size());
      BELAY_TRY(write_at(descriptor, range->offset + used, piece.first(length)));
      piece = piece.subspan(length);
      used += length;
      if (used < range->length) continue;
      ++range;
      used = 0;
    }
    if (done) done(bytes);
    return {};
  });
}

}  // namespace belay::files
