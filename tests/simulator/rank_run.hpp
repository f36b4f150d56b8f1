// SPDX-License-Identifier: Apache-2.0
// One rank's life in one run: open, restore or start, compute and checkpoint, end.
#pragma once

#include <belay/belay.hpp>

#include "os/memory_files.hpp"
#include "session/seams.hpp"
#include "simulator/application.hpp"
#include "simulator/damage.hpp"
#include "simulator/oracle.hpp"
#include "simulator/plan.hpp"
#include "simulator/sim_clock.hpp"
#include "simulator/sim_group.hpp"
#include "simulator/store_walk.hpp"
#include "simulator/world.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::simulator {

/// What the ranks of a run share.
struct SharedRun {
  World* world = nullptr;
  Oracle* oracle = nullptr;
  os::MemoryFiles* disk = nullptr;
  const HistoryPlan* history = nullptr;
  const RunPlan* plan = nullptr;
  SimHub* hub = nullptr;
  std::size_t number = 0;
  StoreCensus census;               ///< of the store before the run
  StoreWalk walk;                   ///< likewise, in a history with replicas
  std::vector<Process*> processes;  ///< by rank
  std::size_t ended = 0;            ///< ranks that are through
  std::deque<RestoreEvent> events;  ///< calls of restore(), in order
  bool disk_is_small = false;
  bool node_was_lost = false;
  std::size_t stopped = 0;   ///< times that a rank saw a later run and let go
  bool restored = false;     ///< some rank has restored a version
  std::size_t healings = 0;  ///< versions that restore() took by itself

  RestoreEvent& event(std::size_t index, std::optional<Version> asked);
  bool any_killed() const;
  /// A node's directory will still vanish in the middle of this run.
  bool node_may_be_lost() const { return plan->loss && plan->loss->point && !node_was_lost; }
};

class RankRun {
 public:
  RankRun(SharedRun& shared, Rank rank);
  /// The body of the rank's task.
  void play();
  const Process& process() const { return *process_; }

  const Result<void>& opened() const { return opened_; }
  bool closed() const { return closed_; }  ///< without an error
  /// Versions that the library called existing, as this rank saw.
  const std::set<Version>& seen() const { return seen_; }

 private:
  Result<Session> open();
  os::Action decide(const os::Operation& operation);
  /// Each of these says whether the rank can go on.
  bool recover(Session& session);
  bool start(Session& session);
  bool restore_newest(Session& session);
  bool ask_for(Session& session, Version version);
  bool go_back(Session& session, std::size_t choice);
  bool act(Session& session, std::size_t call);
  bool capture(Session& session, std::size_t call, bool in_pieces);
  bool wait(Session& session);
  bool probe(Session& session);
  void finish(Session& session);

  Result<Version> restore(Session& session, std::optional<Version> asked, bool allow_missing);
  /// Can all ranks protect exactly the regions of the version that restore() will give?
  bool knows_regions(const std::vector<VersionInfo>& versions) const;
  /// `failed`: how many versions had before restore().
  void look_for_healing(Session& session, std::size_t event, const Result<Version>& restored,
                        std::uint64_t failed);
  /// Protects exactly the regions that the version has on this rank, if the oracle knows it.
  bool keep_regions_of(Session& session, Version version);
  Result<Version> capture_pieces(Session& session, Attempt& attempt);
  void look_around(Session& session);
  /// Has nothing gone wrong so far that could excuse a failure?
  bool undisturbed() const;
  /// Is this an end: the process was killed, or its peers are lost?
  template <class T>
  bool over(const Result<T>& result) const {
    return process_->killed || (!result && result.error().code() == Code::peer_lost);
  }
  template <class T>
  void expect_success(const char* call, const Result<T>& result);
  Oracle& oracle() const;

  SharedRun* shared_;
  World* world_;
  const RunPlan* plan_;
  Rank rank_;
  Process* process_;
  SimClock clock_;
  SimRandom random_;   ///< the library's
  SimRandom choices_;  ///< of this rank's own
  std::vector<Fault> faults_;
  bool faults_on_ = false;
  os::FaultyFiles faulty_;
  std::unique_ptr<os::Files> files_;
  Application application_;
  Result<void> opened_;
  bool closed_ = false;
  std::size_t next_event_ = 0;
  std::size_t next_call_ = 0;
  std::optional<Version> in_flight_;  ///< captured, and no failure was reported since
  std::set<Version> seen_;
};

}  // namespace belay::simulator
