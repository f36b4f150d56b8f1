// SPDX-License-Identifier: Apache-2.0
#include "inspect/elsewhere_blocks.hpp"

namespace belay::inspect {

ElsewhereBlocks::Kind ElsewhereBlocks::kind_of(const store::SegmentFile& file) {
  const format::SegmentHeader& header = file.header();
  return {header.origin.key, header.hash, header.origin.seed};
}

void ElsewhereBlocks::want(const Manifest& manifest) {
  const std::size_t holding = manifest.holding_segments();
  for (std::size_t i = 0; i < holding; ++i) {
    const SegmentId& id = manifest.segments[i].id;
    if (id.rank != kAnyRank) continue;
    Found& found = wanted_[{id.key, manifest.hash, manifest.origin.seed}];
    for_each_block(manifest, i, [&](const RegionRecord&, const BlockName& name) {
      found.try_emplace(name, std::nullopt);
    });
  }
}

void ElsewhereBlocks::find_in(const store::SegmentFile& file, const SegmentId& id,
                              const std::set<std::uint64_t>& bad_offsets) {
  const auto wanted = wanted_.find(kind_of(file));
  if (wanted == wanted_.end()) return;
  for (const store::StoredBlock& block : file.blocks()) {
    if (bad_offsets.contains(block.offset)) continue;
    const auto entry = wanted->second.find({block.fingerprint, block.length});
    if (entry != wanted->second.end() && !entry->second) entry->second = id;
  }
}

bool ElsewhereBlocks::wants(const store::SegmentFile& file, const BlockName& name) const {
  const auto wanted = wanted_.find(kind_of(file));
  return wanted != wanted_.end() && wanted->second.contains(name);
}

std::optional<SegmentId> ElsewhereBlocks::segment_of(const Manifest& manifest,
                                                     const SegmentRef& elsewhere,
                                                     const BlockName& name) const {
  return wanted_.at({elsewhere.id.key, manifest.hash, manifest.origin.seed}).at(name);
}

}  // namespace belay::inspect
