// SPDX-License-Identifier: Apache-2.0
// Carry instead of compaction: which old segments a version should empty by writing their live
// blocks again.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <vector>

namespace belay::store {

/// One byte budget for each segment of the last existing version: so many bytes of the blocks that
/// it holds count as unsafe in the next version. Zero: leave it alone.
using CarryPlan = std::vector<std::uint64_t>;
inline constexpr std::uint64_t kCarryAll = ~std::uint64_t{0};

struct CarryRule {
  std::size_t most_segments = 64;  ///< that a version may refer to
  std::uint64_t image_bytes = 0;   ///< of the last existing version
};

/// Segments are emptied, emptiest first, when the next version could refer to more than
/// `most_segments`, or when dead bytes exceed live ones; the latter at most 1/16 of the image.
CarryPlan plan_carry(const std::vector<SegmentRef>& segments,
                     const std::vector<std::uint64_t>& live_bytes, const CarryRule& rule);

}  // namespace belay::store
