// SPDX-License-Identifier: Apache-2.0
#include "inspect/segment_life.hpp"

#include "base/try.hpp"
#include "inspect/elsewhere_blocks.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

namespace belay::inspect {
namespace {

/// A block of a segment, however often it is needed.
using NeededBlock = std::tuple<SegmentId, std::uint64_t, std::uint64_t, std::uint32_t>;

void make_distinct(std::vector<NeededBlock>& needed) {
  std::sort(needed.begin(), needed.end());
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
}

/// Those in the rank's own segments.
void add_own_blocks(const Manifest& manifest, std::vector<NeededBlock>& needed) {
  for (const RegionRecord& region : manifest.regions) {
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = region.first_block + i;
      const SegmentId& id = manifest.segments[manifest.holders[block]].id;
      if (id.rank == kAnyRank) continue;
      const Fingerprint& fingerprint = manifest.fingerprints[block];
      needed.emplace_back(id, fingerprint.low, fingerprint.high, manifest.length_of(region, i));
    }
  }
  make_distinct(needed);
}

/// Blocks that one rank needs in the segments of another, by that other rank.
using NeededByOthers = std::map<Rank, std::vector<NeededBlock>>;

void add_elsewhere(const Manifest& manifest, const ElsewhereBlocks& elsewhere,
                   NeededByOthers& needed) {
  const std::size_t holding = manifest.holding_segments();
  for (std::size_t i = 0; i < holding; ++i) {
    const SegmentRef& segment = manifest.segments[i];
    if (segment.id.rank != kAnyRank) continue;
    for_each_block(manifest, i, [&](const RegionRecord&, const BlockName& name) {
      const auto id = elsewhere.segment_of(manifest, segment, name);
      if (id)
        needed[id->rank].emplace_back(*id, name.fingerprint.low, name.fingerprint.high,
                                      name.length);
    });
  }
  for (auto& [rank, blocks] : needed) make_distinct(blocks);
}

/// Calls `use` with every manifest that leaves blocks to other ranks.
Result<void> for_each_sharing(const StoreView& view,
                              const std::function<void(const VersionView&, const Manifest&)>& use) {
  for (const VersionView& version : view.versions())
    for (const PartView& part : version.parts) {
      const bool shares =
          part.manifest &&
          std::any_of(part.manifest->segments.begin(), part.manifest->segments.end(),
                      [](const SegmentRef& segment) { return segment.id.rank == kAnyRank; });
      if (!shares) continue;
      auto manifest = view.load(part, version.key);
      if (!manifest && manifest.error().code() == Code::not_found) continue;  // retired meanwhile
      if (!manifest) return Unexpected(manifest.error());
      use(version, *manifest);
    }
  return {};
}

/// Finds the segments of all blocks that are elsewhere: first what is sought, then where it is.
Result<void> find_elsewhere(const StoreView& view, NeededByOthers& live, NeededByOthers& retained) {
  ElsewhereBlocks elsewhere;
  std::set<VersionKey> keys;
  BELAY_TRY(for_each_sharing(view, [&](const VersionView&, const Manifest& manifest) {
    elsewhere.want(manifest);
    for (const SegmentRef& segment : manifest.segments)
      if (segment.id.rank == kAnyRank) keys.insert(segment.id.key);
  }));
  const BlockSources sources(view);
  for (const VersionKey& key : keys)
    for (const BlockSource& source : sources.files_of({key, kAnyRank})) {
      const auto file = store::SegmentFile::open(view.tier(source.node), source.id,
                                                 view.identities().front().store, {}, source.kind);
      if (file) elsewhere.find_in(*file, source.id, {});
    }
  return for_each_sharing(view, [&](const VersionView& version, const Manifest& manifest) {
    if (&version == view.newest_whole()) add_elsewhere(manifest, elsewhere, live);
    add_elsewhere(manifest, elsewhere, retained);
  });
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
  NeededByOthers live_elsewhere;
  NeededByOthers retained_elsewhere;
  BELAY_TRY(find_elsewhere(view, live_elsewhere, retained_elsewhere));
  for (const Rank rank : ranks) {
    std::vector<NeededBlock> live = std::move(live_elsewhere[rank]);
    std::vector<NeededBlock> needed = std::move(retained_elsewhere[rank]);
    for (const VersionView& version : view.versions()) {
      const PartView* part = version.part(rank);
      if (part == nullptr || !part->manifest) continue;
      auto manifest = view.load(*part, version.key);
      if (!manifest && manifest.error().code() == Code::not_found) continue;  // retired meanwhile
      if (!manifest) return Unexpected(manifest.error());
      if (&version == view.newest_whole()) add_own_blocks(*manifest, live);
      add_own_blocks(*manifest, needed);
    }
    add_bytes(live, &SegmentLife::live_bytes, lives);
    add_bytes(needed, &SegmentLife::retained_bytes, lives);
  }
  return lives;
}

}  // namespace belay::inspect
