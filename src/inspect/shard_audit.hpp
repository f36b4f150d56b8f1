// SPDX-License-Identifier: Apache-2.0
// Reads the shards of stripes that versions count on, to their end.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace belay::inspect {

struct ShardFindings {
  std::vector<Flaw> damaged;
  std::vector<Flaw> missing;
  std::uint64_t files = 0;  ///< read
  std::uint64_t bytes = 0;
};

/// Flaws are of no version: parity alone is never all that has a block. `advance` is told of bytes
/// as they are done.
Result<ShardFindings> audit_shards(const StoreView& view, const SegmentUses& uses,
                                   const std::function<void(std::uint64_t)>& advance);

}  // namespace belay::inspect
