// SPDX-License-Identifier: Apache-2.0
// One tier made of several places: new files go to the first, old ones are found in any.
#pragma once

#include "store/tier.hpp"

#include <memory>
#include <vector>

namespace belay::store {

/// Names are unique over all places, since a name says run, version and rank.
/// REQUIRES: places is not empty.
std::unique_ptr<Tier> make_overlay_tier(std::vector<std::unique_ptr<Tier>> places);

}  // namespace belay::store
