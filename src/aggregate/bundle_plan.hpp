// SPDX-License-Identifier: Apache-2.0
// What goes into a bundle, and in which order: the same variable of all ranks lies together, each
// content once.
#pragma once

#include "base/name_match.hpp"
#include "base/nouns.hpp"
#include "codec/codec.hpp"
#include "format/manifest.hpp"
#include "format/rider.hpp"
#include "os/paged_vector.hpp"
#include "store/segment_file.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::aggregate {

/// Blocks of a segment of a member, and which of them the bundle needs.
struct Source {
  SegmentId id;
  store::StoredBlocks blocks;  ///< in the order of the segment
  std::vector<bool> needed;    ///< by block
};

/// A block that goes into the bundle.
struct PlannedBlock {
  std::uint32_t source = 0;
  std::uint32_t block = 0;  ///< of its blocks
};

/// What the bytes of extents are.
struct PlannedVariable {
  std::string name;
  codec::Elements elements;
  bool operator==(const PlannedVariable&) const = default;
};

/// Blocks that are encoded together. There may be as many as blocks: they take little.
struct PlannedExtent {
  std::uint32_t variable = 0;  ///< in BundlePlan::variables
  std::uint32_t count = 0;     ///< of blocks
  std::uint64_t first = 0;     ///< in BundlePlan::blocks
};

struct BundlePlan {
  os::PagedVector<PlannedBlock> blocks;  ///< in the order of the bundle's index
  os::PagedVector<PlannedExtent> extents;
  std::vector<PlannedVariable> variables;
  /// By source: for each of its blocks the entry in the bundle, or kNotInBundle.
  std::vector<os::PagedVector<std::uint32_t>> entries;
  std::uint64_t raw_bytes = 0;

  const PlannedVariable& variable_of(const PlannedExtent& extent) const {
    return variables[extent.variable];
  }
};

/// `manifests` are those of the members: regions of equal type whose names `match` makes equal
/// belong together. Extents have at most `extent_bytes`, unless a block is larger.
BundlePlan plan_bundle(const std::vector<Source>& sources,
                       std::span<const format::ManifestView> manifests, std::uint64_t extent_bytes,
                       const NameMatch& match = {});

/// The same for blocks of one source that are too many for memory, some of them at a time: they
/// stay in their order, in which variables lie together as well. `regions` are those of the
/// manifest, by block; kNoRegion where that is not known.
inline constexpr std::uint32_t kNoRegion = ~std::uint32_t{0};
BundlePlan plan_in_order(const Source& source, const Manifest& manifest,
                         std::span<const std::uint32_t> regions, std::uint64_t extent_bytes,
                         const NameMatch& match = {});

/// A part of a bundle, whose tables are in memory at once.
struct Chapter {
  std::size_t first_source = 0;  ///< of those of the bundle
  std::vector<Source> sources;   ///< it and those after it: the blocks that come next
  BundlePlan plan;
};

}  // namespace belay::aggregate
