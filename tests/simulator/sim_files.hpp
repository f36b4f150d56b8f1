// SPDX-License-Identifier: Apache-2.0
// The files of one simulated process: every operation is a point where others may go on and kills
// may strike. What a killed process does no longer reaches the files underneath, and its locks are
// released.
#pragma once

#include "os/files.hpp"
#include "simulator/world.hpp"

namespace belay::simulator {

/// `under`, the world and the process outlive it.
std::unique_ptr<os::Files> make_sim_files(World& world, Process& process, os::Files& under);

}  // namespace belay::simulator
