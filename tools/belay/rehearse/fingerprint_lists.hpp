// SPDX-License-Identifier: Apache-2.0
// Two series of versions compared by their fingerprints alone; no block is read.
#pragma once

#include "base/nouns.hpp"
#include "tools/belay/rehearse/version_watch.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::tool {

/// How one region of the second series differs from the first, where it does so first.
struct Difference {
  enum class Kind { content, size, type, only_in_first, only_in_second };
  std::string region;
  Kind kind = Kind::content;
  std::size_t place = 0;  ///< in the series
  Rank rank = 0;          ///< the lowest one
  Rank ranks = 1;         ///< how many ranks, at that place
  // Of that rank; for content only:
  std::uint64_t first_block = 0;
  std::uint64_t last_block = 0;  ///< of the first run of blocks that differ
  std::uint64_t differing = 0;
  std::uint64_t blocks = 0;
  // For another size:
  std::uint64_t first_bytes = 0;
  std::uint64_t second_bytes = 0;
};

struct Comparison {
  std::vector<Difference> differences;  ///< one for each region, those that differ first first
  std::vector<std::string> agreeing;    ///< regions that are the same everywhere, by name
  std::uint64_t equal_regions = 0;      ///< summed over versions and ranks: how alike they are
};

using Series = std::span<const SeenVersion>;

/// As far as the shorter one goes. REQUIRES: equal seeds.
Comparison compare(Series first, Series second);

}  // namespace belay::tool
