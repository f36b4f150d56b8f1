// SPDX-License-Identifier: Apache-2.0
#include "session/global_read.hpp"

#include "base/try.hpp"
#include "session/segment_read.hpp"
#include "store/segment_file.hpp"

#include <map>

namespace belay::session {
namespace {

/// A copy on the global tier.
struct GlobalCopy {
  SegmentId id;
  catalog::Whereabouts::Place place = 0;
};

/// Those of the segment itself, then those of segments of the same version that the manifest counts
/// on: equal blocks of other ranks.
std::vector<GlobalCopy> copies_for(const SegmentId& id, const catalog::Whereabouts& whereabouts,
                                   const Manifest& manifest) {
  std::vector<SegmentId> ids{id};
  for (const SegmentRef& other : manifest.segments)
    if (other.id.key == id.key && other.id != id) ids.push_back(other.id);
  std::vector<GlobalCopy> copies;
  for (const SegmentId& each : ids)
    for (const auto& holder : whereabouts.holders(each))
      if (holder.is_copy() && whereabouts.in_sight(holder.place))
        copies.push_back({each, holder.place});
  return copies;
}

}  // namespace

Result<std::vector<LostFile>> read_global(Equipment& equipment, os::Parallel& readers,
                                          store::Tier& sight,
                                          const catalog::Whereabouts& whereabouts,
                                          const Manifest& manifest, std::vector<LostBlock>& lost) {
  std::map<SegmentId, std::vector<WantedBlock>> wanted;
  for (LostBlock& block : lost) wanted[block.id].push_back(block.wanted);
  lost.clear();
  std::vector<LostFile> damaged;
  for (auto& [id, blocks] : wanted) {
    for (const GlobalCopy& copy : copies_for(id, whereabouts, manifest)) {
      if (blocks.empty()) break;
      auto& place = store::place_in(sight, whereabouts.directory(copy.place));
      auto file =
          store::SegmentFile::open(place, copy.id, manifest.origin.store, {}, FileKind::copy);
      UnreadBlocks unread;
      if (file)
        BELAY_TRY(read_present(equipment, readers, *std::move(file), blocks, unread));
      else
        unread.reason = file.error();
      if (unread.reason) {
        equipment.log.warn("restore: {}", unread.reason->message());
        damaged.push_back({copy.id, FileKind::copy, copy.place});
      }
      blocks.insert(blocks.end(), unread.blocks.begin(), unread.blocks.end());
    }
    for (const WantedBlock& block : blocks) lost.push_back({block, id});
  }
  return damaged;
}

}  // namespace belay::session
