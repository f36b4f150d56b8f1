// SPDX-License-Identifier: Apache-2.0
#include "base/node_sets.hpp"

#include <algorithm>
#include <vector>

namespace belay {

NodeSets::NodeSets(std::uint32_t nodes, const Level& level)
    : nodes_(nodes),
      count_(level.has_parity() ? std::max(nodes / std::max(level.least_nodes(), 1u), 1u) : 1) {}

std::size_t most_lost(std::span<const std::uint32_t> sets, std::uint32_t losses) {
  std::vector<std::uint32_t> sorted(sets.begin(), sets.end());
  std::sort(sorted.begin(), sorted.end());
  std::size_t lost = 0;
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto end = std::upper_bound(first, sorted.end(), *first);
    const auto there = static_cast<std::size_t>(end - first);
    lost += *first == kNoSet ? there : std::min<std::size_t>(there, losses);
    first = end;
  }
  return lost;
}

}  // namespace belay
