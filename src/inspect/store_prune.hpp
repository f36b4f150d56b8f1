// SPDX-License-Identifier: Apache-2.0
// Removing old versions by hand, by the rules of retention and in the order of vote/.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "inspect/store_view.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace belay::inspect {

struct PlannedFile {
  std::size_t node = 0;
  std::string name;
  format::ParsedName parsed;
  std::uint64_t bytes = 0;
};

struct PrunePlan {
  std::vector<VersionKey> versions;  ///< newest first
  std::vector<PlannedFile> manifests;
  std::vector<PlannedFile> segments;
  std::vector<PlannedFile> copies;
  std::vector<PlannedFile> shards;
  std::vector<PlannedFile> bundles;

  std::uint64_t bytes() const;
};

/// All but the `keep` newest whole versions (of dumps likewise) and what is newer than the last of
/// these, and the segments that nothing counts on then, with their copies and shards. Who counts on
/// a member of a stripe counts on the whole stripe. corruption if the store is a mixture.
/// REQUIRES: keep > 0.
Result<PrunePlan> plan_prune(const StoreView& view, std::uint64_t keep);

/// Manifests first, durably on all nodes, then the rest. After an error what is left is
/// still a store with the same newest versions. REQUIRES: the locks are held.
Result<void> prune(const StoreView& view, const PrunePlan& plan, Log& log);

}  // namespace belay::inspect
