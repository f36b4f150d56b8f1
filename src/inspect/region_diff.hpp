// SPDX-License-Identifier: Apache-2.0
// One region in two versions, compared.
#pragma once

#include <belay/result.hpp>

#include "inspect/difference.hpp"
#include "inspect/part_reader.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace belay::inspect {

struct RegionDiff {
  std::uint64_t blocks = 0;              ///< of the second version
  std::uint64_t changed_blocks = 0;      ///< of these, not with the same content in the first
  std::uint64_t changed_bytes = 0;       ///< of these blocks
  std::optional<Difference> difference;  ///< of numbers of the same type, where both have elements
};

/// Reads only what fingerprints do not prove equal; where they prove nothing (another block size or
/// hash), everything. Memory is bounded. `advance` is told of bytes as they are done.
Result<RegionDiff> diff_region(PartReader& first, const RegionRecord& first_region,
                               PartReader& second, const RegionRecord& second_region,
                               const std::function<void(std::uint64_t bytes)>& advance);

}  // namespace belay::inspect
