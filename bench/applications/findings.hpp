// SPDX-License-Identifier: Apache-2.0
// What the runs of the applications showed, for people and for the record. `findings` has
// `applications`, each as run_replay() gives it, with its name, ranks, command and run_s.
#pragma once

#include "measure/report.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace belay::bench {

using Json = nlohmann::json;

/// One row for each application and way to save it, over all versions but the first, which is full
/// anyway: shares of the protected bytes over the run, and medians of times and of their ratios.
Json summarize(const Json& applications);
/// Of one application and way; ends the program if there is none.
const Json& row_of(const Json& summary, const std::string& application, const std::string& layout,
                   int block);

/// Readable tables of everything but the targets. REQUIRES: findings.summary.
void print_tables(const Json& findings);
/// The figures to reach: less bytes and less time than full versions, and what the paper expects.
std::vector<Target> targets_of(const Json& findings);

/// Draws SVG files into `directory`: `applications-share` (the paper's figure 4),
/// `applications-runs` (its figure 6) and `applications-cost` (its tables III, V and VI).
void draw_figures(const Json& findings, const std::filesystem::path& directory);

}  // namespace belay::bench
