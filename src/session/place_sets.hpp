// SPDX-License-Identifier: Apache-2.0
// Which directories of nodes may be lost at once, if each set of nodes loses as many as its level
// says.
#pragma once

#include "catalog/whereabouts.hpp"
#include "dedup/node_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace belay::session {

class PlaceSets {
 public:
  PlaceSets() = default;  ///< nothing may be lost
  /// `directories`: by rank.
  PlaceSets(const dedup::NodeLayout& layout, std::uint32_t losses,
            const std::vector<std::string>& directories, catalog::Whereabouts& whereabouts);

  /// Of each set.
  std::uint32_t losses() const { return losses_; }
  /// The most of these places, all different, that can be lost at once. Where there are several
  /// sets, nothing is promised of a directory that no rank of this job has.
  std::size_t most_lost_of(const std::vector<catalog::Whereabouts::Place>& places) const;

 private:
  std::uint32_t losses_ = 0;
  std::uint32_t count_ = 1;
  std::map<catalog::Whereabouts::Place, std::uint32_t> set_of_;
};

}  // namespace belay::session
