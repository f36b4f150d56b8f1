// SPDX-License-Identifier: Apache-2.0
// Blocks of lost segments, rebuilt from what is left of their stripes.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "comm/group.hpp"
#include "session/block_fetch.hpp"
#include "session/equipment.hpp"

#include <vector>

namespace belay::session {

/// Collective. As fetch_blocks(), for what that has left: fills what stripes can give back. Every
/// block is verified before it is copied.
Result<Fetched> rebuild_blocks(Equipment& equipment, ranks::Group& group,
                               const catalog::Whereabouts& whereabouts, const Manifest& manifest,
                               std::vector<LostBlock> lost);

}  // namespace belay::session
