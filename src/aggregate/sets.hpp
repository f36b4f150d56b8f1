// SPDX-License-Identifier: Apache-2.0
// Which ranks share a file on the global tier, and who of them writes it.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::aggregate {

/// Ranks that share a file, and the first of them writes it.
struct RankSet {
  std::uint32_t number = 0;  ///< that of its first rank: unlike those of all others
  std::vector<Rank> members;

  Rank aggregator() const { return members.front(); }
};

/// `nodes` by rank. Sets have at most `most` ranks, and of each node nearly equal ones: aggregators
/// read what their ranks have stored from the node's own files.
std::vector<RankSet> sets_on_nodes(std::span<const std::uint32_t> nodes, std::uint64_t most);
/// As few as possible, over nodes: aggregators ask for what others have stored.
std::vector<RankSet> sets_over_nodes(Rank ranks, std::uint64_t most);

}  // namespace belay::aggregate
