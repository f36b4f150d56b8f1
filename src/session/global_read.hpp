// SPDX-License-Identifier: Apache-2.0
// Blocks that a rank could not read on its own node, from copies on the global tier, which every
// rank can read by itself.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "session/block_fetch.hpp"
#include "session/equipment.hpp"

#include <vector>

namespace belay::session {

/// Fills what it can, and takes it out of `lost`. Every block is verified before it is copied.
/// `sight` reads all of the global tier; `manifest` is the one that wants the blocks. Returns
/// copies that could not be opened or gave wrong bytes; an error means that reading itself was not
/// possible.
Result<std::vector<LostFile>> read_global(Equipment& equipment, os::Parallel& readers,
                                          store::Tier& sight,
                                          const catalog::Whereabouts& whereabouts,
                                          const Manifest& manifest, std::vector<LostBlock>& lost);

}  // namespace belay::session
