// SPDX-License-Identifier: Apache-2.0
// The versions of an application's run, taken again: each is restored from the application's own
// store, and the same bytes are then saved in several ways at once, so that the ways can be
// compared at every version. What is measured is the saving; the application does not run
// meanwhile.
#pragma once

#include "measure/team.hpp"

#include <nlohmann/json.hpp>

namespace belay::bench {

using Json = nlohmann::json;

/// {application, store, dir (for new stores), ways: [{layout, block}]}, with a layout of `arrays`,
/// a region for each of the application's, or `serialized`, all of them written into one region by
/// a save function. Collective; the result is rank 0's.
Json run_replay(Team& team, const Json& job);

}  // namespace belay::bench
