// SPDX-License-Identifier: Apache-2.0
#include "inspect/region_change.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::inspect {
namespace {

/// The parent's part, if it can still be read.
std::optional<Manifest> load_parent(const StoreView& view, const Manifest& manifest) {
  const VersionView* parent = view.find(manifest.parent);
  const PartView* part = parent != nullptr ? parent->part(manifest.origin.rank) : nullptr;
  if (part == nullptr || !part->manifest) return {};
  auto loaded = view.load(*part, parent->key);
  if (!loaded || !comparable(manifest, *loaded)) return {};
  return *std::move(loaded);
}

}  // namespace

bool comparable(const Manifest& a, const Manifest& b) {
  return a.hash == b.hash && a.origin.seed == b.origin.seed && a.block_bytes == b.block_bytes;
}

const RegionRecord* find_region(const Manifest& manifest, const std::string& name) {
  const auto found = std::find_if(manifest.regions.begin(), manifest.regions.end(),
                                  [&](const RegionRecord& region) { return region.name == name; });
  return found == manifest.regions.end() ? nullptr : &*found;
}

ChangedBlocks changed_blocks(const Manifest& manifest, const RegionRecord& region,
                             const Manifest& other, const RegionRecord* other_region) {
  ChangedBlocks changed;
  const std::uint64_t blocks = manifest.blocks_of(region);
  const std::uint64_t others = other_region != nullptr ? other.blocks_of(*other_region) : 0;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint32_t length = manifest.length_of(region, i);
    if (i < others && other.length_of(*other_region, i) == length &&
        other.fingerprints[other_region->first_block + i] ==
            manifest.fingerprints[region.first_block + i])
      continue;
    ++changed.blocks;
    changed.bytes += length;
  }
  return changed;
}

Result<std::vector<RegionChange>> region_changes(const StoreView& view, const VersionView& version,
                                                 const PartView& part) {
  BELAY_ASSIGN(const Manifest manifest, view.load(part, version.key));
  const auto parent = load_parent(view, manifest);
  const SegmentId own{version.key, part.rank};
  const auto holder = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                   [&](const SegmentRef& segment) { return segment.id == own; });
  const auto holder_index = static_cast<std::size_t>(holder - manifest.segments.begin());
  std::vector<RegionChange> changes;
  for (const RegionRecord& region : manifest.regions) {
    RegionChange change{.region = region,
                        .blocks = manifest.blocks_of(region),
                        .changed_blocks = {},
                        .changed_bytes = {}};
    for (std::uint64_t i = 0; i < change.blocks; ++i) {
      if (manifest.holders[region.first_block + i] != holder_index) continue;
      ++change.own_blocks;
      change.own_bytes += manifest.length_of(region, i);
    }
    if (parent) {
      const auto changed =
          changed_blocks(manifest, region, *parent, find_region(*parent, region.name));
      change.changed_blocks = changed.blocks;
      change.changed_bytes = changed.bytes;
    } else if (manifest.parent == VersionKey{}) {
      change.changed_blocks = change.blocks;
      change.changed_bytes = region.bytes;
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace belay::inspect
