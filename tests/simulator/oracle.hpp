// SPDX-License-Identifier: Apache-2.0
// What must be true, whatever happened. The oracle remembers every rank's bytes at each capture and
// what the library promised, and judges what comes back.
#pragma once

#include <belay/result.hpp>
#include <belay/stats.hpp>

#include "base/nouns.hpp"
#include "simulator/application.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::simulator {

/// One rank's part in one call of checkpoint().
struct Capture {
  enum class Outcome { absent, unknown, captured, skipped, failed };
  Outcome outcome = Outcome::absent;  ///< unknown: the rank was killed before the call returned
  State state;
};

/// One collective call of checkpoint() or commit().
struct Attempt {
  std::size_t run = 0;
  std::size_t call = 0;  ///< in the run
  std::optional<Version> version;
  std::vector<Capture> ranks;
  bool promised = false;  ///< some rank could see that the version exists
  /// ... before this run at the latest. A run that was under way already when only stragglers of an
  /// earlier one were told need not have heard of it.
  std::size_t promised_to = std::numeric_limits<std::size_t>::max();
  bool told = false;             ///< wait() or close() said so
  bool damaged = false;          ///< a file that it counts on was damaged later
  bool forgotten = false;        ///< every trace of its number was lost later
  std::uint32_t copies = 1;      ///< one less may be lost, of each set
  std::set<std::string> wounds;  ///< nodes that were lost or damaged since it was begun
  bool global = false;           ///< all nodes may be lost: some rank saw it on the global tier
  bool any_state = false;        ///< the healing of a version that no rank lived to name

  /// Could it exist, as far as its captures go?
  bool may_exist() const;
};

/// One collective call of restore().
struct RestoreEvent {
  struct Part {
    bool returned = false;  ///< before the rank was killed
    std::optional<Version> version;
    std::optional<Error> error;
    State before;
    State after;
    bool fell_back =
        false;  ///< newer versions may have been tried, which leaves regions unspecified
  };
  std::size_t run = 0;
  std::optional<Version> asked;
  std::vector<Part> ranks;
  bool disturbed = false;  ///< kills or faults struck before all ranks had returned
  bool at_start = false;   ///< before the run has taken any version
  bool heals = false;      ///< it may take a version by itself

  std::optional<Version> result() const;  ///< of any rank
};

/// Members are called by tasks of a Scheduler, or while none runs.
class Oracle {
 public:
  Oracle(Rank ranks, std::uint64_t keep) : ranks_(ranks), keep_(keep) {}

  template <class... Args>
  void violation(fmt::format_string<Args...> format, Args&&... args) {
    if (violations_.size() < kMostViolations)
      violations_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  const std::vector<std::string>& violations() const { return violations_; }

  /// What follows is about this run, or seen by one of its ranks. Ranks of an earlier run may live
  /// on beside those of the newest.
  void speak_of(std::size_t run);
  std::size_t run() const { return run_; }

  /// Versions of this run are put on so many nodes, or survive as many losses by parity.
  void set_copies(std::size_t run, std::uint32_t copies) { copies_[run] = copies; }
  /// These are the nodes of this run: so many of each set may be lost.
  void set_sets(std::size_t run, std::vector<std::vector<std::string>> sets) {
    sets_[run] = std::move(sets);
  }

  /// Of versions of this run the global tier gets every so-many-th.
  void set_global(std::size_t run, std::uint64_t every) { global_every_[run] = every; }

  /// This run's call `call`; rank's part in it begins.
  Attempt& begin_capture(std::size_t call, Rank rank);
  /// The rank's call returned. `may_skip`: it may give the number of a version in flight instead.
  void end_capture(Attempt& attempt, Rank rank, const Result<Version>& result, bool may_skip);
  /// restore() may take a version of what it has restored; the rank's part in it begins.
  void begin_healing(std::size_t event, Rank rank);
  /// restore() succeeded on this rank. `version`: the one that it took, if it did. `failed`: it
  /// failed to, after which ranks may have voted all the same.
  void end_healing(std::size_t event, Rank rank, std::optional<Version> version, State state,
                   bool failed);
  /// wait() or close() told a rank that this version exists. 0: that none does.
  void told(Rank rank, Version version, const char* where);
  /// versions() of a rank lists this version.
  void listed(Rank rank, Version version);

  /// versions() of a rank says that this version is on the global tier.
  void drained(Rank rank, Version version);
  /// A file of the global tier was damaged.
  void damage_global();
  bool global_is_damaged() const { return global_damaged_; }

  /// All versions that count on a damaged file. `settled_mark`: it was the mark that a version has
  /// existed; without it a first version that is damaged too may look like an aborted first start.
  void damage(const std::set<Version>& versions, bool settled_mark);
  /// A node's directory was lost, or some of it damaged: every version begun so far has one copy
  /// less. `lasting`: later ones as well, since nobody can have noticed.
  void wound(const std::string& node, bool lasting);
  /// All versions of this run that were begun so far.
  void damage_begun();
  /// No name in the store tells of numbers of runs before `run` above `highest` any more.
  void forget_above(Version highest, std::size_t run);
  bool any_damage() const { return any_damage_; }
  /// The version that a restart must at least bring back, if there is one.
  const Attempt* required() const;
  const Attempt* find(Version version) const;
  /// This version was damaged, and some rank does not protect all of it: what they do protect may
  /// be left.
  bool may_do_with_less(const RestoreEvent& event, Version version) const;

  void check_latest(Rank rank, std::optional<Version> latest, bool traces_left);
  void check_restore(const RestoreEvent& event, std::size_t index);
  void check_ledgers(Rank rank, const Stats& stats, const std::vector<VersionInfo>& versions);

 private:
  static constexpr std::size_t kMostViolations = 5;
  static constexpr std::size_t kHealings = 1'000'000;  ///< calls from here on are restores

  /// Was more lost than its level stands?
  bool is_beyond_promise(const Attempt& attempt) const;
  Attempt* find_attempt(Version version);
  Attempt* find_forgotten(Version version);
  bool is_promised(const Attempt& attempt) const;
  void promise(Rank rank, Attempt& attempt, const char* where);
  /// How many versions that are newer may exist?
  std::uint64_t newer_than(const Attempt& attempt) const;
  /// And may be on the global tier, if this one is?
  bool may_push_out(const Attempt& newer, const Attempt& attempt) const;
  Attempt* recognise(const RestoreEvent& event, Version version);
  void check_agreement(const RestoreEvent& event);
  void check_content(const RestoreEvent& event, Attempt& attempt);
  void check_age(const RestoreEvent& event, const Attempt& attempt);
  void check_refusal(const RestoreEvent& event);
  Attempt* find_healing(std::size_t run, std::size_t event);
  void settle_healing(const RestoreEvent& event, std::size_t index, const Attempt* restored);
  bool take_any_state(Attempt& healing, const RestoreEvent& event);

  Rank ranks_;
  std::uint64_t keep_;
  std::size_t run_ = 0;
  std::size_t newest_run_ = 0;
  std::map<std::size_t, std::uint32_t> copies_;                        ///< by run
  std::map<std::size_t, std::vector<std::vector<std::string>>> sets_;  ///< by run
  std::map<std::size_t, std::uint64_t> global_every_;                  ///< by run
  std::set<std::string> lasting_wounds_;
  bool global_damaged_ = false;
  bool any_damage_ = false;
  bool settled_mark_damaged_ = false;
  std::list<Attempt> attempts_;  ///< in order: newer ones last
  std::vector<std::string> violations_;
};

}  // namespace belay::simulator
