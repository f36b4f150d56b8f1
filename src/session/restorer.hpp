// SPDX-License-Identifier: Apache-2.0
// One rank's way back: a manifest matched with the protected regions, then every block read,
// verified and put in its place. Nothing here communicates.
#pragma once

#include <belay/belay.hpp>

#include "base/nouns.hpp"
#include "capture/regions.hpp"
#include "session/block_fetch.hpp"
#include "session/equipment.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::session {

/// What to fill from which record.
struct RegionMatch {
  std::string name;
  RegionAccess* access = nullptr;
  const RegionRecord* record = nullptr;  ///< in the manifest
  std::uint64_t bytes = 0;               ///< to be filled
};

/// not_found or invalid_argument where regions and version do not fit and `options` does not allow
/// it: no other version would help, so this ends a restore. `what` names the version in messages.
Result<std::vector<RegionMatch>> match_regions(const Manifest& manifest,
                                               const capture::Regions& regions,
                                               const RestoreOptions& options,
                                               const std::string& what, Log& log);

/// Blocks that are not on this node, or damaged here.
struct LostBlocks {
  std::vector<LostBlock> blocks;
  std::optional<Error> reason;  ///< of the first
};

/// Fills the memory of the matched regions, as far as this node has the blocks. `readers` wait for
/// the disk.
Result<LostBlocks> read_regions(Equipment& equipment, os::Parallel& readers,
                                const Manifest& manifest, const std::vector<RegionMatch>& matches);

/// Lets regions take what was filled in: runs load functions.
Result<void> hand_over(const std::vector<RegionMatch>& matches);

}  // namespace belay::session
