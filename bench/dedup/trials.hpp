// SPDX-License-Identifier: Apache-2.0
// The same contents saved with each mode of dedup, number of copies and block size: a version in a
// fresh store each time.
#pragma once

#include "measure/team.hpp"

#include <nlohmann/json.hpp>

namespace belay::bench {

using Json = nlohmann::json;

/// {contents (an application's name, `mix` or `distinct`), store (the application's) or bytes (of
/// each rank), dir (for new stores), repetitions, trials: [{block, copies, mode}]}.
/// Collective; the result, a row for each trial with medians of times, is rank 0's.
Json run_trials(Team& team, const Json& job);

}  // namespace belay::bench
