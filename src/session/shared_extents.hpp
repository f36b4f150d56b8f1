// SPDX-License-Identifier: Apache-2.0
// Extents of the global tier that have blocks of many ranks: each is read and decoded by one of
// them, who sends the others what they want of it.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "comm/group.hpp"
#include "session/block_fetch.hpp"
#include "session/equipment.hpp"
#include "store/bundle.hpp"

#include <memory>
#include <vector>

namespace belay::session {

/// Collective. Fills blocks that lie in encoded extents of which several ranks want something, and
/// takes them out of `lost`. Every block is verified before it is copied. What only one rank wants,
/// and what could not be had or was damaged, is left: read_global() looks at it and says why.
/// `sight` reads all of the global tier. Returns the bundles that are open now, so that whoever
/// reads on need not open them again; an error means that a peer is lost.
Result<std::vector<std::shared_ptr<store::Bundle>>> share_extents(
    Equipment& equipment, os::Parallel& readers, ranks::Group& group, store::Tier& sight,
    const catalog::Whereabouts& whereabouts, const StoreId& store, std::vector<LostBlock>& lost);

}  // namespace belay::session
