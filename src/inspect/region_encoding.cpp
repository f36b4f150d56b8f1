// SPDX-License-Identifier: Apache-2.0
#include "inspect/region_encoding.hpp"

#include "base/try.hpp"
#include "codec/codec.hpp"
#include "inspect/block_sources.hpp"
#include "store/bundle.hpp"
#include "store/segment_file.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace belay::inspect {
namespace {

/// Blocks of files that have codecs, and the extents that they are in.
class EncodedBlocks {
 public:
  void add(const std::vector<format::Extent>& extents,
           const std::vector<format::IndexEntry>& entries) {
    for (const format::Extent& extent : extents)
      for (std::uint64_t i = extent.first_entry; i < extent.first_entry + extent.entries; ++i)
        blocks_.try_emplace({entries[i].fingerprint, entries[i].length}, extent);
  }
  const format::Extent* find(const BlockName& name) const {
    const auto found = blocks_.find(name);
    return found == blocks_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<BlockName, format::Extent, BlockNameHash> blocks_;
};

void add_segments(const StoreView& view, const PartView& part, const Manifest& manifest,
                  EncodedBlocks& blocks) {
  for (const SegmentRef& segment : manifest.segments) {
    const auto file = store::SegmentFile::open(view.tier(part.node), segment.id,
                                               manifest.origin.store, segment.file_bytes);
    if (!file || !file->encoded()) continue;
    std::vector<format::IndexEntry> entries;
    for (const store::StoredBlock& block : file->blocks())
      entries.push_back({block.fingerprint, block.length});
    blocks.add(file->extents(), entries);
  }
}

bool has_blocks_of(const store::Bundle& bundle, const Manifest& manifest) {
  return std::any_of(manifest.segments.begin(), manifest.segments.end(), [&](const auto& segment) {
    return bundle.rider().find(segment.id).has_value();
  });
}

void add_bundles(const StoreView& view, const Manifest& manifest, EncodedBlocks& blocks) {
  for (std::size_t node = 0; node < view.nodes().size(); ++node)
    for (const FoundFile& file : view.nodes()[node].files) {
      if (!file.parsed || file.parsed->temporary || file.parsed->kind != format::NameKind::bundle)
        continue;
      const auto bundle =
          store::Bundle::open(view.tier(node), {file.parsed->key, file.parsed->rank});
      if (!bundle || !has_blocks_of(**bundle, manifest)) continue;
      if (const auto index = (*bundle)->read_index()) blocks.add(index->extents, index->entries);
    }
}

std::string_view name_of(CodecId id) {
  const codec::Codec* const codec = codec::codec_of(id);
  return codec == nullptr ? "unknown" : codec->name();
}

std::optional<RegionEncoding> encoding_of(const Manifest& manifest, const RegionRecord& region,
                                          const EncodedBlocks& blocks) {
  RegionEncoding encoding;
  std::map<CodecId, std::uint64_t> bytes;
  double encoded = 0;
  for (std::uint64_t i = 0; i < manifest.blocks_of(region); ++i) {
    const std::uint32_t length = manifest.length_of(region, i);
    const format::Extent* const extent =
        blocks.find({manifest.fingerprints[region.first_block + i], length});
    if (extent == nullptr) continue;
    bytes[extent->codec] += length;
    encoding.raw_bytes += length;
    encoded += static_cast<double>(length) * static_cast<double>(extent->encoded_bytes) /
               static_cast<double>(extent->raw_bytes);
  }
  if (bytes.empty()) return {};
  encoding.encoded_bytes = static_cast<std::uint64_t>(encoded + 0.5);
  std::vector<std::pair<std::uint64_t, CodecId>> order;
  for (const auto& [codec, sum] : bytes) order.emplace_back(sum, codec);
  std::sort(order.rbegin(), order.rend());
  for (const auto& [sum, codec] : order)
    encoding.codecs += (encoding.codecs.empty() ? "" : ", ") + std::string(name_of(codec));
  return encoding;
}

}  // namespace

Result<std::vector<std::optional<RegionEncoding>>> region_encodings(const StoreView& view,
                                                                    VersionKey key,
                                                                    const PartView& part) {
  BELAY_ASSIGN(const Manifest manifest, view.load(part, key));
  EncodedBlocks blocks;
  add_segments(view, part, manifest, blocks);
  add_bundles(view, manifest, blocks);
  std::vector<std::optional<RegionEncoding>> encodings;
  for (const RegionRecord& region : manifest.regions)
    encodings.push_back(encoding_of(manifest, region, blocks));
  return encodings;
}

}  // namespace belay::inspect
