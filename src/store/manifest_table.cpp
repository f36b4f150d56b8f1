// SPDX-License-Identifier: Apache-2.0
#include "store/manifest_table.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::store {
namespace {

/// Of a table, at a time.
constexpr std::uint64_t kBlocksAtOnce = 4096;
constexpr std::uint64_t kBytesAtOnce = std::uint64_t{64} << 10;

}  // namespace

Result<ManifestTable> ManifestTable::open(Tier& tier, const std::string& name, PageReader& reader) {
  ManifestTable manifest;
  manifest.where_ = tier.place() + "/" + name;
  BELAY_ASSIGN(manifest.file_, tier.open(name));
  BELAY_TRY(within(manifest.where_, manifest.load(reader)));
  return manifest;
}

Result<void> ManifestTable::read(std::uint64_t begin, std::span<std::byte> into,
                                 PageReader& reader) const {
  return within(where_, reader.read(*file_, begin, into));
}

Result<void> ManifestTable::load(PageReader& reader) {
  BELAY_ASSIGN(file_bytes_, file_->size());
  std::vector<std::byte> front(std::min<std::uint64_t>(file_bytes_, format::kManifestHeaderBytes));
  BELAY_TRY(reader.read(*file_, 0, front));
  BELAY_ASSIGN(const std::uint64_t bytes, format::manifest_front_bytes(front, file_bytes_));
  front.resize(bytes);
  BELAY_TRY(reader.read(*file_, 0, front));
  BELAY_ASSIGN(decoded_, format::decode_manifest_head(front, file_bytes_));
  return verify(reader);
}

Result<void> ManifestTable::verify(PageReader& reader) {
  format::ManifestCheck check;
  std::vector<std::byte> bytes;
  for (std::uint64_t begin = 0; begin < file_bytes_; begin += bytes.size()) {
    bytes.resize(std::min(kBytesAtOnce, file_bytes_ - begin));
    BELAY_TRY(reader.read(*file_, begin, bytes));
    check.take(bytes);
    // Those of its bytes that are holders.
    const std::uint64_t first = std::max(begin, decoded_.holder_offset(0));
    const std::uint64_t end = std::min(begin + bytes.size(), decoded_.holder_offset(blocks()));
    if (first >= end) continue;
    const auto holders = std::span(bytes).subspan(first - begin, end - first);
    BELAY_TRY(format::check_holders(Code::corruption, head(), holders));
    for (const std::byte holder : holders) used_[std::to_integer<std::uint8_t>(holder)] = true;
  }
  return check.finish();
}

Result<void> ManifestTable::each_block(
    PageReader& reader,
    const std::function<void(std::uint64_t, const Fingerprint&, std::uint8_t)>& take) const {
  std::vector<Fingerprint> fingerprints;
  std::vector<std::uint8_t> holders;
  for (std::uint64_t first = 0; first < blocks(); first += kBlocksAtOnce) {
    const std::uint64_t count = std::min(kBlocksAtOnce, blocks() - first);
    fingerprints.resize(count);
    holders.resize(count);
    BELAY_TRY(read(decoded_.fingerprint_offset(first),
                   std::as_writable_bytes(std::span(fingerprints)), reader));
    BELAY_TRY(
        read(decoded_.holder_offset(first), std::as_writable_bytes(std::span(holders)), reader));
    for (std::uint64_t i = 0; i < count; ++i) take(first + i, fingerprints[i], holders[i]);
  }
  return {};
}

}  // namespace belay::store
