// SPDX-License-Identifier: Apache-2.0
// What became of some bytes from one version to the next, seen in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::bench {

struct Changes {
  std::uint64_t changed_bytes = 0;
  std::vector<std::uint64_t> runs;  ///< of neighbouring changed blocks: bytes of each
};

/// A block without an equal of the same length at the same place before has changed.
Changes compare(std::span<const std::byte> before, std::span<const std::byte> after,
                std::uint64_t block_bytes);

}  // namespace belay::bench
