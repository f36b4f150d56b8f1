// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/rehearsal.hpp"

#include "base/try.hpp"
#include "base/units.hpp"
#include "tools/belay/rehearse/rehearsal_run.hpp"
#include "tools/belay/rehearse/rehearsal_words.hpp"
#include "tools/belay/table.hpp"

#include <algorithm>
#include <set>

namespace belay::tool {
namespace {

using End = RehearsalRun::End;

bool failed(const RehearsalRun& run) { return run.end == End::ended && run.status != 0; }

/// Numbers without a gap: a version that failed, or was removed before it was seen, would shift
/// all that follow.
bool is_gapless(Series series) {
  for (std::size_t i = 1; i < series.size(); ++i)
    if (series[i].key.run == series[i - 1].key.run &&
        series[i].key.version != series[i - 1].key.version + 1)
      return false;
  return true;
}

bool same_content(const SeenVersion& a, const SeenVersion& b) {
  return compare({&a, 1}, {&b, 1}).differences.empty();
}

class Rehearser {
 public:
  Rehearser(const RehearsalPlan& plan, os::Files& files, const Interrupts& interrupts,
            const Watcher& watcher)
      : plan_(plan),
        files_(files),
        interrupts_(interrupts),
        watcher_(watcher),
        disturbed_(files, plan.scratch + "/disturbed"),
        undisturbed_(files, plan.scratch + "/undisturbed") {}

  /// Each step says whether the next one makes sense.
  Result<Rehearsal> run() {
    BELAY_ASSIGN(bool go_on, run_until_killed());
    if (go_on) {
      BELAY_ASSIGN(go_on, run_restarted());
    }
    if (go_on) {
      BELAY_ASSIGN(go_on, run_undisturbed());
    }
    if (go_on && align()) BELAY_TRY(judge());
    return std::move(found_);
  }

 private:
  bool stop(Verdict verdict, std::string explanation) {
    found_.verdict = verdict;
    found_.explanation = std::move(explanation);
    if (!found_.runs.empty() && failed(found_.runs.back()))
      found_.failed_log = found_.runs.back().log;
    return false;
  }

  Result<RehearsalRun> run(const std::string& name, VersionWatch& watch,
                           const std::function<bool()>& enough) {
    return run(name, watch, enough, plan_);
  }
  Result<RehearsalRun> run(const std::string& name, VersionWatch& watch,
                           const std::function<bool()>& enough, const RehearsalPlan& plan) {
    BELAY_ASSIGN(RehearsalRun run,
                 run_program(plan, {.name = name, .enough = enough}, watch, interrupts_, watcher_));
    found_.runs.push_back(run);
    return run;
  }

  std::string time_allowed() const { return format_time_ns(plan_.timeout_ns); }

  bool stop_other_store(const RehearsalRun& run) {
    return stop(
        Verdict::other_store,
        fmt::format("the program opened the store {} instead of the one that BELAY_STORE "
                    "names: a `store` set in code wins over the environment. Leave it unset "
                    "for the rehearsal; that store may have got versions just now",
                    run.other_store));
  }

  Result<bool> run_until_killed() {
    BELAY_ASSIGN(const RehearsalRun first, run("killed", disturbed_, [&] {
                   return disturbed_.versions().size() >= plan_.kill_after;
                 }));
    const std::size_t seen = disturbed_.versions().size();
    if (first.end == End::other_store) return stop_other_store(first);
    if (failed(first))
      return stop(Verdict::program_failed,
                  fmt::format("the program failed by itself with {}, after {} and before it "
                              "was killed; make it run first",
                              describe_status(first.status), count_text(seen, "version")));
    if (seen == 0)
      return stop(Verdict::no_versions, why_no_version(first, disturbed_, time_allowed()));
    if (first.end == End::ended)
      return stop(Verdict::no_versions,
                  fmt::format("the program ended by itself after {}, before it could be "
                              "killed after version {}; give it more to do, or lower --kill-after",
                              count_text(seen, "version"), plan_.kill_after));
    if (first.end == End::timeout)
      found_.notes.push_back(fmt::format("killed after {}, when there were {} and not yet {}",
                                         time_allowed(), count_text(seen, "version"),
                                         plan_.kill_after));
    before_ = seen;
    last_run_before_ = disturbed_.highest_run();
    return true;
  }

  Series before() const { return Series(disturbed_.versions()).first(before_); }
  Series after() const {
    const Series all = disturbed_.versions();
    const auto first = std::find_if(all.begin(), all.end(), [&](const SeenVersion& version) {
      return version.key.run > last_run_before_;
    });
    return all.subspan(static_cast<std::size_t>(first - all.begin()));
  }
  const SeenVersion* restored() const {
    if (after().empty()) return nullptr;
    const Series versions = before();
    const auto found = std::find_if(
        versions.begin(), versions.end(),
        [&](const SeenVersion& version) { return version.key == after().front().parent; });
    return found == versions.end() ? nullptr : &*found;
  }
  /// A program that checkpoints at the start of a step saves what it has just restored.
  std::size_t retaken() const {
    return restored() != nullptr && same_content(*restored(), after().front()) ? 1 : 0;
  }

  Result<bool> run_restarted() {
    BELAY_ASSIGN(const RehearsalRun second, run("restarted", disturbed_, [&] {
                   return after().size() >= plan_.compare &&
                          after().size() >= plan_.compare + retaken();
                 }));
    if (after().empty() && failed(second))
      return stop(Verdict::restart_failed,
                  fmt::format("the restarted program failed with {} before it took a version",
                              describe_status(second.status)));
    if (after().empty())
      return stop(
          Verdict::no_versions,
          second.end == End::timeout
              ? fmt::format("the restarted program took no version within {}; raise --timeout",
                            time_allowed())
              : "the restarted program ended without taking another version, so that there "
                "is nothing to compare; give it more to do, or lower --kill-after");
    if (after().front().parent == VersionKey{})
      return stop(
          Verdict::not_restored,
          fmt::format("the restarted program did not restore: its first version, {}, has no "
                      "parent. Call restore() where latest() names a version, before the "
                      "first checkpoint()",
                      after().front().key.version));
    if (restored() == nullptr)
      return stop(
          Verdict::unequal_points,
          fmt::format("the restarted program restored version {}, which was not seen before; "
                      "does another program use the same store?",
                      after().front().parent.version));
    found_.restored = restored()->key.version;
    kept_ = static_cast<std::size_t>(restored() - before().data()) + 1;
    return true;
  }

  Result<bool> run_undisturbed() {
    BELAY_ASSIGN(const RehearsalRun third, run("undisturbed", undisturbed_, [&] {
                   return undisturbed_.versions().size() >= kept_ + plan_.compare;
                 }));
    const std::size_t seen = undisturbed_.versions().size();
    if (seen > kept_ || (third.end == End::ended && third.status == 0 && seen == kept_))
      return true;
    if (failed(third))
      return stop(Verdict::program_failed,
                  fmt::format("the undisturbed program failed by itself with {} after {}",
                              describe_status(third.status), count_text(seen, "version")));
    if (third.end == End::timeout)
      return stop(Verdict::no_versions,
                  fmt::format("the undisturbed program took only {} within {}, and the "
                              "killed one had {}; raise --timeout",
                              count_text(seen, "version"), time_allowed(), kept_));
    return stop(
        Verdict::unequal_points,
        fmt::format("the undisturbed program ended after {}, though the killed one "
                    "had taken {} by then: it does not checkpoint at the same points each "
                    "time. An `interval` set in code wins over BELAY_INTERVAL: leave it unset",
                    count_text(seen, "version"), kept_));
  }

  /// Finds which version of the undisturbed run the first one after the restart stands beside.
  bool align() {
    if (!is_gapless(before()) || !is_gapless(after()) || !is_gapless(undisturbed_.versions()))
      return stop(Verdict::unequal_points,
                  "the numbers of the versions have gaps: some failed, or were removed before they "
                  "were seen. Is there space enough in --scratch? A `keep` set in code wins over "
                  "BELAY_KEEP: leave it unset");
    const Series versions = undisturbed_.versions();
    comparable_after_ = after();
    const Comparison next = compare(versions.subspan(kept_), after());
    const Comparison same = compare(versions.subspan(kept_ - 1), after());
    const bool at_same = same.equal_regions > next.equal_regions;
    beside_ = versions.subspan(at_same ? kept_ - 1 : kept_);
    found_.comparison = at_same ? same : next;
    for (std::size_t i = 0; i < std::min(beside_.size(), comparable_after_.size()); ++i)
      found_.compared.push_back({beside_[i].key.version, comparable_after_[i].key.version});
    if (plan_.every > 1 && !at_same && !found_.comparison.differences.empty())
      return stop(Verdict::unequal_points,
                  fmt::format("this program checkpoints at the end of a step, and after a restart "
                              "counts its {} calls anew: the versions are of different steps. Use "
                              "--every 1",
                              plan_.every));
    return true;
  }

  const RehearsalRun& run_named(const char* name) const {
    return *std::find_if(found_.runs.begin(), found_.runs.end(),
                         [&](const RehearsalRun& run) { return run.name == name; });
  }

  /// One of the two came to its end where the other went on; empty if not.
  std::string other_length() const {
    const auto ended = [&](const char* name) {
      return run_named(name).end == End::ended && run_named(name).status == 0;
    };
    if (ended("undisturbed") && comparable_after_.size() > beside_.size())
      return fmt::format(
          "the undisturbed program ended after version {}, and the restarted one went on at that "
          "point. Is the counter of its steps protected?",
          undisturbed_.versions().back().key.version);
    if (ended("restarted") && beside_.size() > comparable_after_.size())
      return fmt::format(
          "the restarted program ended after version {}, and the undisturbed one went on at that "
          "point. Is the counter of its steps protected?",
          comparable_after_.back().key.version);
    return {};
  }

  Result<void> find_unsteady() {
    std::set<std::string> unsteady;
    const auto add = [&](const Comparison& comparison) {
      for (const Difference& difference : comparison.differences)
        unsteady.insert(difference.region);
    };
    const Series undisturbed = undisturbed_.versions();
    add(compare(undisturbed.first(std::min(kept_, undisturbed.size())), before()));
    const auto& differences = found_.comparison.differences;
    const bool suspicious =
        (!other_length().empty() && unsteady.empty()) ||
        std::any_of(differences.begin(), differences.end(), [&](const Difference& difference) {
          return !unsteady.contains(difference.region);
        });
    if (plan_.baseline || suspicious) {
      VersionWatch again(files_, plan_.scratch + "/baseline");
      BELAY_TRY(
          run("baseline", again, [&] { return again.versions().size() >= undisturbed.size(); }));
      add(compare(undisturbed, again.versions()));
    }
    found_.unsteady.assign(unsteady.begin(), unsteady.end());
    return {};
  }

  bool is_unsteady(const std::string& region) const {
    return std::find(found_.unsteady.begin(), found_.unsteady.end(), region) !=
           found_.unsteady.end();
  }

  Result<void> judge() {
    const std::string length = other_length();
    BELAY_TRY(find_unsteady());
    const auto& differences = found_.comparison.differences;
    const bool all_unsteady =
        std::all_of(differences.begin(), differences.end(),
                    [&](const Difference& difference) { return is_unsteady(difference.region); });
    if ((!differences.empty() && all_unsteady) || (!length.empty() && !found_.unsteady.empty()))
      stop_nondeterministic();
    else if (!differences.empty())
      return judge_differing();
    else if (!length.empty())
      stop(Verdict::differs, length);
    else if (found_.compared.empty())
      stop(Verdict::no_versions,
           "the program ended before a version could be compared; give it more to do, or lower "
           "--kill-after");
    else
      judge_same();
    return {};
  }

  void judge_same() {
    const RehearsalRun& restarted = run_named("restarted");
    if (!failed(restarted)) {
      stop(Verdict::same,
           "in these regions the restarted program computes the same, byte for byte. What is not "
           "protected, and changes none of them, is not seen");
      return;
    }
    stop(Verdict::restart_failed,
         fmt::format("the restarted program failed with {}, though its "
                     "versions up to then are those of the undisturbed one",
                     describe_status(restarted.status)));
    found_.failed_log = restarted.log;
  }

  void stop_nondeterministic() {
    stop(
        Verdict::nondeterministic,
        "differs even between two undisturbed runs: the program itself is not deterministic, or it "
        "checkpoints at other points each time (an `interval` set in code, or the clock). Fix the "
        "seeds of its random generators and the order of its sums for the rehearsal");
  }

  Result<void> judge_differing() {
    const auto& differences = found_.comparison.differences;
    std::string names;
    for (const Difference& difference : differences)
      if (difference.place == differences.front().place && !is_unsteady(difference.region))
        names += (names.empty() ? "`" : ", `") + difference.region + "`";
    if (names.empty()) names = "`" + differences.front().region + "`";
    std::string explanation = question_about(names, differences.front().kind);
    if (all_differ_at_once()) {
      BELAY_ASSIGN(const bool follows, follows_interval());
      explanation += follows
                         ? ". Every region differs from the first version on: is the counter of "
                           "the steps protected?"
                         : ". But the program does not follow BELAY_INTERVAL: if an `interval` is "
                           "set in code, which wins, the versions are of different points, and "
                           "say nothing; leave it unset and rehearse again";
    }
    stop(Verdict::differs, std::move(explanation));
    return {};
  }

  bool all_differ_at_once() const {
    return found_.comparison.agreeing.empty() && found_.comparison.differences.back().place == 0;
  }

  /// Does its second version become another one when it is told to leave out a call?
  Result<bool> follows_interval() {
    const Series undisturbed = undisturbed_.versions();
    if (plan_.every != 1 || undisturbed.size() < 3) return true;
    RehearsalPlan sparse = plan_;
    sparse.every = 2;
    VersionWatch watch(files_, plan_.scratch + "/interval");
    BELAY_TRY(run(
        "interval", watch, [&] { return watch.versions().size() >= 2; }, sparse));
    return watch.versions().size() < 2 || same_content(watch.versions()[1], undisturbed[2]);
  }

  const RehearsalPlan& plan_;
  os::Files& files_;
  const Interrupts& interrupts_;
  const Watcher& watcher_;
  VersionWatch disturbed_;  ///< of the killed run and the restarted one
  VersionWatch undisturbed_;
  std::size_t before_ = 0;  ///< versions when it was killed
  Run last_run_before_ = 0;
  std::size_t kept_ = 0;     ///< versions up to the restored one
  Series beside_;            ///< versions of the undisturbed run ...
  Series comparable_after_;  ///< ... that stand beside these of the restarted one
  Rehearsal found_;
};

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return "same";
    case Verdict::differs:
      return "differs";
    case Verdict::not_restored:
      return "not_restored";
    case Verdict::restart_failed:
      return "restart_failed";
    case Verdict::nondeterministic:
      return "nondeterministic";
    case Verdict::unequal_points:
      return "unequal_points";
    case Verdict::no_versions:
      return "no_versions";
    case Verdict::other_store:
      return "other_store";
    case Verdict::program_failed:
      break;
  }
  return "program_failed";
}

Result<Rehearsal> rehearse(const RehearsalPlan& plan, os::Files& files,
                           const Interrupts& interrupts, const Watcher& watcher) {
  return Rehearser(plan, files, interrupts, watcher).run();
}

}  // namespace belay::tool
