// SPDX-License-Identifier: Apache-2.0
// How much of each segment is still needed.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <map>

namespace belay::inspect {

struct SegmentLife {
  std::uint64_t file_bytes = 0;
  std::uint64_t live_bytes = 0;      ///< of blocks that the newest whole version needs
  std::uint64_t retained_bytes = 0;  ///< of blocks that any version here needs
};

/// Of every segment that is there. Manifests are loaded one after the other; memory is that of the
/// block lists of one rank, and of all blocks that are elsewhere.
Result<std::map<SegmentId, SegmentLife>> segment_lives(const StoreView& view);

}  // namespace belay::inspect
