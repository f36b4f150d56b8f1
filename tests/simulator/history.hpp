// SPDX-License-Identifier: Apache-2.0
// One history: several runs of a simulated job over one store, with everything that can go wrong,
// judged by the oracle. The seed decides all of it.
#pragma once

#include "simulator/plan.hpp"
#include "simulator/scheduler.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace belay::simulator {

struct HistoryOutcome {
  std::vector<std::string> violations;
  std::uint64_t digest = 0;       ///< equal for equal histories
  std::uint64_t operations = 0;   ///< file operations and collectives
  std::uint64_t checkpoints = 0;  ///< collective calls
  std::uint64_t restores = 0;     ///< that gave a version
  std::uint64_t overlaps = 0;     ///< runs that began while ranks of the one before lived on
  std::uint64_t stopped = 0;      ///< times that such a rank saw the later run and let go
  std::uint64_t losses = 0;       ///< of a node's directory
  std::uint64_t set_losses = 0;   ///< times that all was lost at once that each set may lose
  std::uint64_t healings = 0;     ///< versions that restore() took by itself
  std::uint64_t removals = 0;     ///< of files from the global tier
  std::uint64_t walks = 0;        ///< stores of which every block was counted
};

/// `verbose` prints every operation.
HistoryOutcome run_history(std::uint64_t seed, TaskThreads& threads, bool verbose,
                           HistoryKind kind = HistoryKind::any);

}  // namespace belay::simulator
