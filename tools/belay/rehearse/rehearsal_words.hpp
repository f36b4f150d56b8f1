// SPDX-License-Identifier: Apache-2.0
// What a rehearsal says to the person who wrote the program.
#pragma once

#include "tools/belay/rehearse/rehearsal.hpp"
#include "tools/belay/rehearse/version_watch.hpp"

#include <string>

namespace belay::tool {

/// The usual mistake behind a difference of this kind, as a question. `names` are the regions.
std::string question_about(const std::string& names, Difference::Kind kind);

/// Why a run gave no version, as far as can be seen from outside, and what to do.
std::string why_no_version(const RehearsalRun& run, const VersionWatch& watch,
                           const std::string& time_allowed);

}  // namespace belay::tool
