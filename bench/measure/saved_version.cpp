// SPDX-License-Identifier: Apache-2.0
#include "measure/saved_version.hpp"

#include "measure/must.hpp"

#include <memory>

namespace belay::bench {

void protect_saved(Session& session, const std::vector<RegionInfo>& regions, Arrays& arrays) {
  for (const RegionInfo& region : regions)
    must("protect", session.protect(region.name, std::make_unique<SavedRegion>(
                                                     region.type, arrays[region.name])));
}

SavedVersion load_newest(Team& team, const std::string& application,
                         const std::filesystem::path& store) {
  Options options;
  options.store = store;
  options.application = application;
  Session session = must("open", team.open(std::move(options)));
  const std::vector<VersionInfo> versions = session.versions();
  if (versions.empty()) die(application + " left no version");
  SavedVersion saved{versions.front().regions, {}};
  protect_saved(session, saved.regions, saved.arrays);
  must("restore", session.restore());
  must("close", session.close());
  return saved;
}

}  // namespace belay::bench
