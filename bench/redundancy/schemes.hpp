// SPDX-License-Identifier: Apache-2.0
// What it costs to make versions that survive the loss of nodes, and to come back after one, beside
// what moving the bytes costs at least. Every rank plays a node; all of the data changes between
// versions, and no two blocks are equal.
#pragma once

#include "measure/team.hpp"

#include <nlohmann/json.hpp>

namespace belay::bench {

using Json = nlohmann::json;

/// {dir (for stores), bytes (of each rank), repetitions, schemes: [{redundancy, members, shards,
/// losses}]}, where copies have no members. A scheme that the library does not have gets a row that
/// says why. Collective; the result is rank 0's.
Json measure_schemes(Team& team, const Json& job);

}  // namespace belay::bench
