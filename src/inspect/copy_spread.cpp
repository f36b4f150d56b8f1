// SPDX-License-Identifier: Apache-2.0
#include "inspect/copy_spread.hpp"

#include <algorithm>

namespace belay::inspect {

CopySpread::CopySpread(const StoreView& view, const BlockSources& sources, VersionKey key,
                       const std::function<bool(const BlockSource&)>& usable) {
  for (const BlockSource& source : sources.files_of({key, kAnyRank})) {
    if (!usable(source)) continue;
    const auto outline = read_outline(view, source);
    if (!outline) continue;
    segments_.try_emplace(source.id, outline->complete());
    add(source.node, source.id, *outline);
  }
}

const SegmentOutline* CopySpread::segment(const SegmentId& id) const {
  const auto found = segments_.find(id);
  return found == segments_.end() ? nullptr : &found->second;
}

const std::set<std::size_t>& CopySpread::nodes_of(const format::IndexEntry& entry) const {
  static const std::set<std::size_t> none;
  const auto found = nodes_.find({entry.fingerprint, entry.length});
  return found == nodes_.end() ? none : found->second;
}

std::vector<bool> CopySpread::lacking(const SegmentId& id, std::size_t nodes,
                                      std::size_t node) const {
  const auto& entries = segments_.at(id).entries;
  std::vector<bool> wanted(entries.size());
  if (files_.contains({node, id})) return wanted;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& has = nodes_of(entries[i]);
    wanted[i] = has.size() < nodes && !has.contains(node);
  }
  return wanted;
}

bool CopySpread::lacks(const SegmentId& id, std::size_t nodes) const {
  const auto& entries = segments_.at(id).entries;
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return nodes_of(entry).size() < nodes; });
}

void CopySpread::add(std::size_t node, const SegmentId& id, const SegmentOutline& outline) {
  files_.insert({node, id});
  for (std::size_t i = 0; i < outline.entries.size(); ++i)
    if (outline.present[i])
      nodes_[{outline.entries[i].fingerprint, outline.entries[i].length}].insert(node);
}

}  // namespace belay::inspect
