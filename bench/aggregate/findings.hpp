// SPDX-License-Identifier: Apache-2.0
// What the trials showed, for people and for the record. Rows are as run_trials() gives them.
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

/// Tables have the configurations of table 5 of Islam et al., "McrEngine: a scalable checkpointing
/// system using data-aware aggregation and compression", in the measure of its figures 10 to 13.
void print_legend(double name_ms);
/// Of one kind of contents.
void print_rows(const Json& rows);
void print_break_even(const Json& points);
std::vector<Target> targets_of(const Json& rows);

}  // namespace belay::bench
