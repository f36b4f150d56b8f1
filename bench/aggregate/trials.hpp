// SPDX-License-Identifier: Apache-2.0
// Versions that go to a slow global tier and come back from it, under mpirun.
#pragma once

#include "measure/team.hpp"
#include "os/files.hpp"

#include <nlohmann/json.hpp>

namespace belay::bench {

using Json = nlohmann::json;

/// The job: `contents` (`fields`, or an application whose versions are in `store`), `bytes` of a
/// rank's fields, `local` and `global` directories, `repetitions`, `name_ms`, and `trials`: {case,
/// codec, aggregate, MBps (0: as fast as the disk)}. The result: a row for each trial. Collective.
Json run_trials(Team& team, const Json& job);

/// Opens a session of all ranks that works with these files.
Result<Session> open_with(os::Files& files, Options options);

}  // namespace belay::bench
