// SPDX-License-Identifier: Apache-2.0
#include "aggregate/sets.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace belay::aggregate {

namespace {

/// Nearly equal ones of these ranks.
void add_sets(const std::vector<Rank>& ranks, std::uint64_t most, std::vector<RankSet>& sets) {
  const std::size_t count = (ranks.size() + most - 1) / most;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(ranks.size() * i / count);
    const auto end = static_cast<std::ptrdiff_t>(ranks.size() * (i + 1) / count);
    RankSet& set = sets.emplace_back();
    set.members.assign(ranks.begin() + begin, ranks.begin() + end);
    set.number = set.members.front();
  }
}

}  // namespace

std::vector<RankSet> sets_over_nodes(Rank ranks, std::uint64_t most) {
  std::vector<Rank> all(ranks);
  std::iota(all.begin(), all.end(), Rank{0});
  std::vector<RankSet> sets;
  add_sets(all, most, sets);
  return sets;
}

std::vector<RankSet> sets_on_nodes(std::span<const std::uint32_t> nodes, std::uint64_t most) {
  std::map<std::uint32_t, std::vector<Rank>> ranks;
  for (Rank rank = 0; rank < nodes.size(); ++rank) ranks[nodes[rank]].push_back(rank);
  std::vector<RankSet> sets;
  for (const auto& [node, here] : ranks) add_sets(here, most, sets);
  std::sort(sets.begin(), sets.end(),
            [](const RankSet& a, const RankSet& b) { return a.number < b.number; });
  return sets;
}

}  // namespace belay::aggregate
