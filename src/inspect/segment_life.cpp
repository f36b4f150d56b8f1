// SPDX-License-Identifier: Apache-2.0
#include "inspect/segment_life.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

namespace belay::inspect {
namespace {

/// A block of a segment, however often it is needed.
using NeededBlock = std::tuple<SegmentId, std::uint64_t, std::uint64_t, std::uint32_t>;

void add_blocks(const Manifest& manifest, std::vector<NeededBlock>& needed) {
  for (const RegionRecord& region : manifest.regions) {
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = region.first_block + i;
      const Fingerprint& fingerprint = manifest.fingerprints[block];
      needed.emplace_back(manifest.segments[manifest.holders[block]].id, fingerprint.low,
                          fingerprint.high, manifest.length_of(region, i));
    }
  }
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
}

void add_bytes(const std::vector<NeededBlock>& needed, std::uint64_t SegmentLife::*figure,
               std::map<SegmentId, SegmentLife>& lives) {
  for (const auto& [segment, low, high, length] : needed)
    if (const auto life = lives.find(segment); life != lives.end()) life->second.*figure += length;
}

}  // namespace

Result<std::map<SegmentId, SegmentLife>> segment_lives(const StoreView& view) {
  std::map<SegmentId, SegmentLife> lives;
  std::set<Rank> ranks;
  for (const NodeView& node : view.nodes())
    for (const FoundFile& file : node.files)
      if (file.parsed && !file.parsed->temporary && file.parsed->kind == format::NameKind::segment)
        lives[{file.parsed->key, file.parsed->rank}].file_bytes = file.bytes;
  for (const VersionView& version : view.versions())
    for (const PartView& part : version.parts) ranks.insert(part.rank);
  for (const Rank rank : ranks) {
    std::vector<NeededBlock> needed;
    for (const VersionView& version : view.versions()) {
      const PartView* part = version.part(rank);
      if (part == nullptr || !part->manifest) continue;
      auto manifest = view.load(*part, version.key);
      if (!manifest && manifest.error().code() == Code::not_found) continue;  // retired meanwhile
      if (!manifest) return Unexpected(manifest.error());
      if (&version == view.newest_whole()) {
        std::vector<NeededBlock> live;
        add_blocks(*manifest, live);
        add_bytes(live, &SegmentLife::live_bytes, lives);
      }
      add_blocks(*manifest, needed);
    }
    add_bytes(needed, &SegmentLife::retained_bytes, lives);
  }
  return lives;
}

}  // namespace belay::inspect
