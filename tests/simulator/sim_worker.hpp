// SPDX-License-Identifier: Apache-2.0
// Background work as a task of the scheduler, so that it interleaves with everything else.
#pragma once

#include "session/worker.hpp"
#include "simulator/world.hpp"

namespace belay::simulator {

std::unique_ptr<session::Worker> make_sim_worker(World& world, Process& process);

}  // namespace belay::simulator
