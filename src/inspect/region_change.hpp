// SPDX-License-Identifier: Apache-2.0
// What a version did to each region, told from its manifest and its parent's.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace belay::inspect {

/// Of one region of one rank, in the order of the manifest.
struct RegionChange {
  RegionRecord region;
  std::uint64_t blocks = 0;
  /// Blocks that this version's own segment holds: new content, and what was carried.
  std::uint64_t own_blocks = 0;
  std::uint64_t own_bytes = 0;
  /// Blocks that are not in the same place of the parent's region. Unset: the parent is not there
  /// any more, or was made with another block size or hash. Without a parent all have changed.
  std::optional<std::uint64_t> changed_blocks;
  std::optional<std::uint64_t> changed_bytes;
};

/// Blocks of `region` in `manifest` whose content is not that of the same place in `other`.
/// REQUIRES: comparable(manifest, other).
struct ChangedBlocks {
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
};
ChangedBlocks changed_blocks(const Manifest& manifest, const RegionRecord& region,
                             const Manifest& other, const RegionRecord* other_region);

/// Do equal fingerprints mean equal blocks?
bool comparable(const Manifest& a, const Manifest& b);

const RegionRecord* find_region(const Manifest& manifest, const std::string& name);

Result<std::vector<RegionChange>> region_changes(const StoreView& view, const VersionView& version,
                                                 const PartView& part);

}  // namespace belay::inspect
