// SPDX-License-Identifier: Apache-2.0
// Blocks that a rank could not read on its own node, from whatever files of other nodes have them:
// found by content, wherever those files were meant to be.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "comm/group.hpp"
#include "session/equipment.hpp"
#include "session/needs_wire.hpp"
#include "session/segment_read.hpp"

#include <vector>

namespace belay::session {

/// A block, and the segment that should hold it (rank kAnyRank: one of that version).
struct LostBlock {
  WantedBlock wanted;
  SegmentId id;
};

struct Fetched {
  std::vector<LostBlock> left;    ///< blocks that nobody has
  std::vector<LostFile> damaged;  ///< files that gave this rank wrong bytes, or it could not open
};

/// Collective. Fills what any rank can read. Every block is verified before it is copied.
/// `manifest` is the one that wants them.
Result<Fetched> fetch_blocks(Equipment& equipment, os::Parallel& readers, ranks::Group& group,
                             const catalog::Whereabouts& whereabouts, const Manifest& manifest,
                             std::vector<LostBlock> lost);

}  // namespace belay::session
