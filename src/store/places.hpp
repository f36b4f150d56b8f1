// SPDX-License-Identifier: Apache-2.0
// Directories of a store as tiers: what lies in bundles is there, too.
#pragma once

#include "os/files.hpp"
#include "store/tier.hpp"

#include <memory>
#include <string>
#include <vector>

namespace belay::store {

/// One that exists. `files` must outlive it.
std::unique_ptr<Tier> open_place(os::Files& files, const std::string& directory);
/// New files go to the first of these, old ones are found in any. REQUIRES: there is one.
std::unique_ptr<Tier> open_places(os::Files& files, const std::vector<std::string>& directories);

}  // namespace belay::store
