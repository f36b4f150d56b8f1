// SPDX-License-Identifier: Apache-2.0
// What a seed stands for: the options of a history, and for each of its runs what happens when.
#pragma once

#include "base/level.hpp"
#include "os/faulty_files.hpp"
#include "simulator/sim_random.hpp"
#include "simulator/world.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belay::simulator {

enum class Act {
  checkpoint,
  pieces,  ///< begin(), add() of some regions, writes to them, commit()
  if_due,  ///< due(), then checkpoint()
  wait,
  go_back,  ///< restore() of one of versions(), in the middle of a run
  nothing,  ///< the computation goes on
};

enum class End {
  close,     ///< a clean one
  abandon,   ///< the session is destroyed without close()
  kills,     ///< some or all ranks are killed
  power_cut  ///< all ranks are killed, and what was not durable is lost
};

/// File operations of one rank that fail.
struct Fault {
  Rank rank = 0;
  std::uint32_t kinds = 0;  ///< bit i: operations of kind i
  std::uint64_t skip = 0;   ///< so many of these succeed first
  std::uint64_t count = 1;  ///< so many fail then
  os::Action action;
};

/// A node's directory is gone, for good.
struct NodeLoss {
  std::optional<std::uint64_t> point;  ///< of all ranks together; unset: after the run
  bool kills = false;                  ///< and its ranks with it
  std::uint64_t nodes = 1;             ///< so many at once; all, if there are not so many
  bool of_each_set = false;            ///< as many of each set as may be lost
};

struct RunPlan {
  std::uint64_t seed = 0;
  std::uint64_t block_bytes = 512;
  std::string hash = "xxh3";
  std::optional<std::uint64_t> ranks_per_node;
  Level level;         ///< what `redundancy` asks for, and the strongest in `levels`
  std::string levels;  ///< in a history with tiers
  std::uint64_t global_every = 0;
  std::string codec = "raw";               ///< of the global tier, or of nodes where there is none
  std::optional<std::uint64_t> aggregate;  ///< ranks that share a file there; unset: not given
  std::uint64_t rotation = 0;              ///< ranks come back so many places further on
  std::vector<Act> acts;
  End end = End::close;
  std::vector<Kill> kills;
  std::vector<Fault> faults;
  bool early_faults = false;                ///< they may strike in open() and restore() already
  std::optional<std::uint64_t> room_bytes;  ///< the disk fills up
  bool probe_usable = false;   ///< at the end faults go away: the session must work again
  bool ask_for_newer = false;  ///< first ask for each newer version that has a manifest
  bool exact_regions = false;  ///< restore with exactly the regions that the version has
  bool start_over = false;     ///< after a failed restore the program starts from nothing
  std::uint64_t damages = 0;   ///< files to damage after the run
  std::optional<NodeLoss> loss;
  /// The next run begins while ranks that were not killed still live.
  bool leaves_stragglers = false;
};

struct HistoryPlan {
  std::uint64_t seed = 0;
  bool replicas = false;  ///< ranks plan versions together, and keep copies for each other
  bool erasure = false;   ///< or parity: some of the versions
  bool tiers = false;     ///< and there are levels and a global tier
  Rank ranks = 1;
  std::uint64_t keep = 2;
  std::uint64_t segments = 4;
  std::string dedup = "local";
  std::string late = "wait";
  bool background = true;
  bool one_thread = false;  ///< the background must not communicate
  bool tracker = true;
  std::uint64_t switch_in = 4;
  std::uint64_t timeout_ns = 20'000'000'000;
  std::vector<RunPlan> runs;
};

/// What all histories shall be like; else each kind has its share of the seeds.
/// `diskless`: those of tiers in which nodes hold nothing.
enum class HistoryKind { any, replicas, erasure, tiers, diskless };

HistoryPlan make_plan(std::uint64_t seed, HistoryKind kind = HistoryKind::any);

/// The node of a rank in a run with ranks_per_node.
std::string node_of(const HistoryPlan& history, const RunPlan& run, Rank rank);
/// Directories of nodes by the set that they are in, as erasure codes form them; all in one without
/// these.
std::vector<std::vector<std::string>> sets_of(const HistoryPlan& history, const RunPlan& run);

}  // namespace belay::simulator
