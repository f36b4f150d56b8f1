// SPDX-License-Identifier: Apache-2.0
// What the trials showed, for people and for the record. `findings` has `rows`, as run_trials()
// gives them, and `runs`: {application, ranks, mode (or `no versions`), seconds}.
#pragma once

#include "measure/report.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace belay::bench {

using Json = nlohmann::json;

/// Tables laid out as the figures 3 to 5 and table I of Nicolae, "Leveraging Naturally Distributed
/// Data Redundancy to Reduce Collective I/O Replication Overhead", with the paper's figures.
void print_tables(const Json& findings);
std::vector<Target> targets_of(const Json& findings);

}  // namespace belay::bench
