// SPDX-License-Identifier: Apache-2.0
#include "store/places.hpp"

#include "store/bundled_tier.hpp"
#include "store/overlay_tier.hpp"

namespace belay::store {

std::unique_ptr<Tier> open_place(os::Files& files, const std::string& directory) {
  return make_bundled_tier(make_local_tier(files, directory));
}

std::unique_ptr<Tier> open_places(os::Files& files, const std::vector<std::string>& directories) {
  std::vector<std::unique_ptr<Tier>> places;
  for (const std::string& directory : directories) places.push_back(open_place(files, directory));
  return make_overlay_tier(std::move(places));
}

}  // namespace belay::store
