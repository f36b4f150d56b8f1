// SPDX-License-Identifier: Apache-2.0
// Which ranks share a file on the global tier, and who of them writes it.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::aggregate {

/// Ranks of one node: their aggregator reads what they have stored from the node's own files.
struct RankSet {
  std::uint32_t number = 0;  ///< that of its first rank: unlike those of all others
  std::vector<Rank> members;

  Rank aggregator() const { return members.front(); }
};

/// `nodes` by rank. Sets have at most `most` ranks, and of each node nearly equal ones.
std::vector<RankSet> sets_of(std::span<const std::uint32_t> nodes, std::uint64_t most);

}  // namespace belay::aggregate
