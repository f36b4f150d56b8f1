// SPDX-License-Identifier: Apache-2.0
// What the jobs found, for people and for the record.
#pragma once

#include "differential/jobs.hpp"
#include "measure/report.hpp"

#include <vector>

namespace belay::bench {

/// Readable tables of everything but the targets. Parts that were skipped are left out.
void print_tables(const Json& findings);

/// The figures to reach that the findings have something to say about.
std::vector<Target> targets_of(const Json& findings);

}  // namespace belay::bench
