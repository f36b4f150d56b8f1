// SPDX-License-Identifier: Apache-2.0
// One tier made of several places: new files go to the first, old ones are found in any.
#pragma once

#include "store/tier.hpp"

#include <memory>
#include <vector>

namespace belay::store {

/// A name that is in several places means the first, but remove() means all. Segments are in one
/// only, since their names say run, version and rank; of copies and manifests ask places(). Places
/// other than the first may be removed at any time. REQUIRES: places is not empty.
std::unique_ptr<Tier> make_overlay_tier(std::vector<std::unique_ptr<Tier>> places);

}  // namespace belay::store
