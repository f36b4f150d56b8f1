// SPDX-License-Identifier: Apache-2.0
// Versions that applications have left, taken out of their stores.
#pragma once

#include "measure/saved_region.hpp"
#include "measure/team.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace belay::bench {

/// What one rank has of it.
struct SavedVersion {
  std::vector<RegionInfo> regions;
  Arrays arrays;
};

/// Protects these regions as bytes. REQUIRES: `arrays` outlives the session.
void protect_saved(Session& session, const std::vector<RegionInfo>& regions, Arrays& arrays);

/// The newest version of an application in a store. Collective.
SavedVersion load_newest(Team& team, const std::string& application,
                         const std::filesystem::path& store);

}  // namespace belay::bench
