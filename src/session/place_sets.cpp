// SPDX-License-Identifier: Apache-2.0
#include "session/place_sets.hpp"

#include "base/node_sets.hpp"

namespace belay::session {

PlaceSets::PlaceSets(const dedup::NodeLayout& layout, std::uint32_t losses,
                     const std::vector<std::string>& directories, catalog::Whereabouts& whereabouts)
    : losses_(losses), count_(layout.sets()) {
  if (count_ == 1) return;
  for (Rank rank = 0; rank < layout.ranks(); ++rank)
    set_of_[whereabouts.place(directories[rank])] = layout.set_of(rank);
}

std::size_t PlaceSets::most_lost_of(const std::vector<catalog::Whereabouts::Place>& places) const {
  std::vector<std::uint32_t> sets;
  for (const auto place : places) {
    const auto found = set_of_.find(place);
    sets.push_back(count_ == 1 ? 0 : found == set_of_.end() ? kNoSet : found->second);
  }
  return most_lost(sets, losses_);
}

}  // namespace belay::session
