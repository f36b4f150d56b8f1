// SPDX-License-Identifier: Apache-2.0
// Files that are missing or damaged, made again from copies and stripes, so that versions survive
// again what their levels say.
//
// A segment, a shard, a damaged copy and a manifest come back byte for byte. What a copy had that
// is gone nobody has written down: it is made again with those blocks that are on fewer nodes than
// they should be, which is what it had unless blocks could be in one of several copies.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_check.hpp"
#include "inspect/store_repair.hpp"
#include "inspect/store_view.hpp"

#include <memory>
#include <vector>

namespace belay::inspect {

struct RebuildReport {
  RepairReport repair;
  std::vector<std::unique_ptr<os::Lock>> locks;  ///< of directories that were made for lost nodes
};

/// `report` is of `view`. Nothing that a version has is touched; what cannot be made again is told
/// with the reason. REQUIRES: the locks are held since before both were made; those in the result
/// are kept as long.
Result<RebuildReport> rebuild_files(const StoreView& view, const CheckReport& report);

}  // namespace belay::inspect
