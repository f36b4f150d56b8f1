// SPDX-License-Identifier: Apache-2.0
// What the trials showed, for people and for the record. `findings` has `rows`, as run_trials()
// gives them, and `name_ms`.
#pragma once

#include "measure/report.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace belay::bench {

using Json = nlohmann::json;

/// For each contents and direction (`checkpoint`, `restart`): {contents, direction, MBps}, the
/// bandwidth in sum below which aware beats none, by interpolation between the measured ones. If it
/// is none of them, MBps is left out: `wins` is the case that is better at the lowest.
Json break_even(const Json& rows);

/// The configurations of table 5 of Islam et al., "McrEngine: a scalable checkpointing system using
/// data-aware aggregation and compression", in the measure of its figures 10 to 13.
void print_tables(const Json& findings);
std::vector<Target> targets_of(const Json& findings);

}  // namespace belay::bench
