// SPDX-License-Identifier: Apache-2.0
// One run of the rehearsed program, ended as soon as enough versions exist.
#pragma once

#include "tools/belay/rehearse/rehearsal.hpp"
#include "tools/belay/rehearse/version_watch.hpp"

namespace belay::tool {

struct RunOrder {
  std::string name;
  std::function<bool()> enough;  ///< looked at after each look into the store
};

/// Everything in the program's tree is killed at the end, however it came. `watch` has seen all
/// versions that exist then.
Result<RehearsalRun> run_program(const RehearsalPlan& plan, const RunOrder& order,
                                 VersionWatch& watch, const Interrupts& interrupts,
                                 const Watcher& watcher);

}  // namespace belay::tool
