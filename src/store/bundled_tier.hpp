// SPDX-License-Identifier: Apache-2.0
// A place whose files may lie in bundles: manifests and copies of segments that are in one are
// there under their own names, as if they were files.
#pragma once

#include "store/tier.hpp"

#include <memory>

namespace belay::store {

/// Names of files come before those in bundles; a copy that is in both has the blocks of both.
/// Removing the manifest of a version from a bundle leaves a mark that counts for all manifests of
/// that version; removing a copy from one changes nothing, since its bytes go with the bundle.
std::unique_ptr<Tier> make_bundled_tier(std::unique_ptr<Tier> tier);

}  // namespace belay::store
