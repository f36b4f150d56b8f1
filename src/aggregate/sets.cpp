// SPDX-License-Identifier: Apache-2.0
#include "aggregate/sets.hpp"

#include <algorithm>
#include <map>

namespace belay::aggregate {

std::vector<RankSet> sets_of(std::span<const std::uint32_t> nodes, std::uint64_t most) {
  std::map<std::uint32_t, std::vector<Rank>> ranks;
  for (Rank rank = 0; rank < nodes.size(); ++rank) ranks[nodes[rank]].push_back(rank);
  std::vector<RankSet> sets;
  for (const auto& [node, here] : ranks) {
    const std::size_t count = (here.size() + most - 1) / most;
    for (std::size_t i = 0; i < count; ++i) {
      const auto begin = static_cast<std::ptrdiff_t>(here.size() * i / count);
      const auto end = static_cast<std::ptrdiff_t>(here.size() * (i + 1) / count);
      RankSet& set = sets.emplace_back();
      set.members.assign(here.begin() + begin, here.begin() + end);
      set.number = set.members.front();
    }
  }
  std::sort(sets.begin(), sets.end(),
            [](const RankSet& a, const RankSet& b) { return a.number < b.number; });
  return sets;
}

}  // namespace belay::aggregate
