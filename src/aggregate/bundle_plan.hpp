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

/// A segment of a member, and which of its blocks the bundle needs.
struct Source {
  SegmentId id;
  Rank keeper = 0;  ///< the member that can read it
  std::uint32_t block_bytes = 0;
  store::StoredBlocks blocks;  ///< all of the segment, in its order
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

}  // namespace belay::aggregate
