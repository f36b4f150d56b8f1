// SPDX-License-Identifier: Apache-2.0
// The simulated machine: processes that can be killed at any point, time, and a trace.
#pragma once

#include "base/nouns.hpp"
#include "os/files.hpp"
#include "simulator/scheduler.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::simulator {

/// One incarnation of a rank. Once killed it is a zombie: its code goes on, but all its file
/// operations and collectives fail at once and nothing of it reaches the world.
struct Process {
  Rank rank = 0;
  std::size_t job = 0;       ///< the one that World::start_run() began; earlier ones are stragglers
  std::uint64_t points = 0;  ///< operations so far
  bool killed = false;
  std::uint64_t stalled_until_ns = 0;          ///< its operations wait, as behind a slow disk
  std::set<std::unique_ptr<os::Lock>*> locks;  ///< held; a kill releases them as the kernel would
};

/// What becomes of the operation at which a kill strikes.
enum class Manner { before, after, torn };

struct Kill {
  std::optional<Rank> rank;  ///< unset: all ranks
  std::uint64_t point = 0;   ///< that rank's, or of all ranks together
  Manner manner = Manner::before;
};

/// How the operation that begins at a point fares.
enum class Fate {
  completes,
  fails,     ///< the process is dead
  last,      ///< it takes effect, then strike() must be called
  torn_last  ///< as `last`, but only a part of it takes effect
};

/// One for each history. Members are called by tasks, or while none runs.
class World {
 public:
  World(std::uint64_t seed, std::uint64_t switch_in, TaskThreads& threads, bool verbose);

  Scheduler& scheduler() { return scheduler_; }
  SimRandom& random() { return random_; }

  /// A new run of `ranks` processes, which these kills await. Those of earlier runs that are not
  /// killed live on.
  void start_run(Rank ranks, std::vector<Kill> kills);
  Process& process(Rank rank) { return *processes_[rank]; }
  Rank ranks() const { return static_cast<Rank>(processes_.size()); }

  /// Each file operation and collective begins here: time passes, other tasks may go on, kills
  /// strike.
  Fate point(Process& process);
  /// Completes the kill that point() announced by `last` or `torn_last`.
  void strike();
  void kill(Process& process);
  void kill_all();         ///< of this run
  void kill_stragglers();  ///< of earlier runs
  std::uint64_t points() const { return points_; }

  /// `look` hears of each file that a process has removed or given another name.
  void on_removed(std::function<void(const std::string&)> look) { on_removed_ = std::move(look); }
  void removed(const std::string& path) const {
    if (on_removed_) on_removed_(path);
  }

  /// One line for people who look into a history, and a mark in its digest.
  template <class... Args>
  void trace(fmt::format_string<Args...> format, Args&&... args) {
    if (verbose_) write_trace(fmt::format(format, std::forward<Args>(args)...));
  }
  /// Equal for equal histories: what happened, in which order.
  std::uint64_t digest() const { return digest_; }
  void note(std::uint64_t what) { digest_ = mix(digest_ ^ what); }

 private:
  void write_trace(const std::string& line);
  const Kill* due_kill(const Process& process) const;

  SimRandom random_;
  Scheduler scheduler_;
  bool verbose_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Process>> former_;  ///< sessions of earlier runs may still name them
  std::size_t job_ = 0;
  std::vector<Kill> kills_;
  std::optional<Kill> striking_;
  std::uint64_t points_ = 0;
  std::uint64_t digest_ = 0;
  std::function<void(const std::string&)> on_removed_;
};

}  // namespace belay::simulator
