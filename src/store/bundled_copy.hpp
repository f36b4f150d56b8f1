// SPDX-License-Identifier: Apache-2.0
// A copy of a segment whose blocks are in bundles, as a file.
#pragma once

#include <belay/result.hpp>

#include "os/files.hpp"
#include "store/bundle.hpp"
#include "store/segment_file.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace belay::store {

/// The bytes that a copy with the blocks of all these bundles would have. Each of them has the
/// segment `id`; they may lack different blocks, and come by rising version. One that cannot tell
/// what it has of the segment is left out; an error if none can. `file` is a copy in a file of its
/// own, whose blocks come before those in bundles.
Result<std::unique_ptr<os::File>> open_bundled_copy(std::vector<std::shared_ptr<Bundle>> bundles,
                                                    const SegmentId& id,
                                                    std::optional<SegmentFile> file = {});
/// The manifest of this rank. REQUIRES: the bundle carries it.
std::unique_ptr<os::File> open_carried_manifest(std::shared_ptr<Bundle> bundle, Rank rank);

}  // namespace belay::store
