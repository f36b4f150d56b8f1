// SPDX-License-Identifier: Apache-2.0
// On which nodes the blocks of one version's segments are, while copies are being added.
#pragma once

#include "inspect/block_sources.hpp"
#include "inspect/segment_outline.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace belay::inspect {

/// One thread.
class CopySpread {
 public:
  /// Reads the indexes of all files of the version that are `usable`.
  CopySpread(const StoreView& view, const BlockSources& sources, VersionKey key,
             const std::function<bool(const BlockSource&)>& usable);

  /// nullptr: no file says which blocks it has.
  const SegmentOutline* segment(const SegmentId& id) const;
  /// By entry: is the block on fewer nodes than that, and not on `node`? None if the node has a
  /// file of this segment already.
  std::vector<bool> lacking(const SegmentId& id, std::size_t nodes, std::size_t node) const;
  /// Is any block of it on fewer nodes than that?
  bool lacks(const SegmentId& id, std::size_t nodes) const;
  /// The node has a file with these blocks now.
  void add(std::size_t node, const SegmentId& id, const SegmentOutline& outline);

 private:
  const std::set<std::size_t>& nodes_of(const format::IndexEntry& entry) const;

  std::map<SegmentId, SegmentOutline> segments_;
  std::set<std::pair<std::size_t, SegmentId>> files_;
  std::unordered_map<BlockName, std::set<std::size_t>, BlockNameHash> nodes_;
};

}  // namespace belay::inspect
