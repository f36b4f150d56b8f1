// SPDX-License-Identifier: Apache-2.0
// A program run killed and restarted, and run undisturbed; and whether that made a difference.
#pragma once

#include <belay/result.hpp>

#include "os/files.hpp"
#include "tools/belay/rehearse/fingerprint_lists.hpp"
#include "tools/belay/rehearse/process_tree.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace belay::tool {

struct RehearsalPlan {
  std::vector<std::string> command;
  std::string scratch;           ///< an empty directory, its path canonical
  std::uint64_t every = 1;       ///< `interval`, in calls of due()
  std::uint64_t kill_after = 3;  ///< versions
  std::uint64_t compare = 5;     ///< versions after the restart
  std::uint64_t timeout_ns = 0;  ///< of each run
  bool baseline = false;  ///< run it undisturbed a second time even if nothing seems to differ
  std::uint64_t seed = 0;
};

enum class Verdict {
  same,
  differs,
  not_restored,      ///< the restarted program began anew
  restart_failed,    ///< the restarted program ended with an error
  nondeterministic,  ///< undisturbed runs differ as well
  unequal_points,    ///< the runs cannot be matched version by version
  no_versions,       ///< or too few of them, so that nothing can be said
  other_store,       ///< the program does not use BELAY_STORE
  program_failed,    ///< by itself, before it was killed
};
const char* name_of(Verdict verdict);

struct RehearsalRun {
  enum class End { killed, ended, timeout, other_store };
  std::string name;  ///< killed, restarted, undisturbed, baseline
  End end = End::ended;
  int status = 0;  ///< if it ended
  double seconds = 0;
  std::size_t versions = 0;  ///< new ones that came to exist
  std::string other_store;   ///< the directory that it opened instead
  std::string log;           ///< file with its output
};

struct MatchedVersions {
  Version undisturbed = 0;
  Version restarted = 0;
};

struct Rehearsal {
  Verdict verdict = Verdict::no_versions;
  std::string explanation;  ///< what it means, and what to do
  std::vector<RehearsalRun> runs;
  std::optional<Version> restored;
  std::vector<MatchedVersions> compared;
  Comparison comparison;
  std::vector<std::string> unsteady;  ///< regions that differ between undisturbed runs as well
  std::vector<std::string> notes;
  std::optional<std::string> failed_log;  ///< of the run that failed by itself
};

/// Called all the time with what is going on.
using Watcher = std::function<void(const std::string& doing)>;

/// busy if a signal waits in `interrupts`. In any case no process of the program is left.
Result<Rehearsal> rehearse(const RehearsalPlan& plan, os::Files& files,
                           const Interrupts& interrupts, const Watcher& watcher);

}  // namespace belay::tool
