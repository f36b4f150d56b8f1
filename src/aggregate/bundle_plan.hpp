// SPDX-License-Identifier: Apache-2.0
// What goes into a bundle, and in which order: the same variable of all ranks lies together, each
// content once.
#pragma once

#include "base/name_match.hpp"
#include "base/nouns.hpp"
#include "codec/codec.hpp"
#include "format/rider.hpp"
#include "store/segment_file.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace belay::aggregate {

/// A segment of a member, and which of its blocks the bundle needs.
struct Source {
  SegmentId id;
  Rank keeper = 0;  ///< the member that can read it
  std::uint32_t block_bytes = 0;
  std::vector<store::StoredBlock> blocks;  ///< all of the segment, in its order
  std::vector<bool> needed;                ///< by block
};

/// A block that goes into the bundle.
struct PlannedBlock {
  std::uint32_t source = 0;
  std::uint32_t block = 0;  ///< of its blocks
};

/// Blocks that are encoded together.
struct PlannedExtent {
  std::string variable;
  codec::Elements elements;
  std::size_t first = 0;  ///< in BundlePlan::blocks
  std::size_t count = 0;
};

struct BundlePlan {
  std::vector<PlannedBlock> blocks;  ///< in the order of the bundle's index
  std::vector<PlannedExtent> extents;
  /// By source: for each of its blocks the entry in the bundle, or kNotInBundle.
  std::vector<std::vector<std::uint32_t>> entries;
  std::uint64_t raw_bytes = 0;
};

/// `manifests` are those of the members: regions of equal type whose names `match` makes equal
/// belong together. Extents have at most `extent_bytes`, unless a block is larger.
BundlePlan plan_bundle(const std::vector<Source>& sources, const std::vector<Manifest>& manifests,
                       std::uint64_t extent_bytes, const NameMatch& match = {});

}  // namespace belay::aggregate
