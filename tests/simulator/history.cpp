// SPDX-License-Identifier: Apache-2.0
#include "simulator/history.hpp"

#include "simulator/rank_run.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

namespace belay::simulator {

namespace {

// Many times what the longest history needs.
constexpr std::uint64_t kMostYields = 2'000'000;

/// A run under way.
struct Job {
  SharedRun shared;
  std::unique_ptr<SimHub> hub;
  std::vector<std::unique_ptr<RankRun>> ranks;
  bool overlaps = false;  ///< with stragglers of the one before
};

class History {
 public:
  History(std::uint64_t seed, TaskThreads& threads, bool verbose, HistoryKind kind)
      : plan_(make_plan(seed, kind)),
        world_(seed, plan_.switch_in, threads, verbose),
        oracle_(plan_.ranks, plan_.keep) {
    disk_.set_in_memory(seed % 2 == 1);
    if (plan_.tiers) world_.on_removed([this](const std::string& path) { check_removal(path); });
  }

  HistoryOutcome play() {
    world_.scheduler().on_hang(kMostYields, [this](const std::string& why) {
      oracle_.violation("hang: {}", why);
      world_.kill_all();
      world_.kill_stragglers();
    });
    for (std::size_t number = 0; number < plan_.runs.size(); number += jobs_.size()) {
      play_runs(number);
      if (!oracle_.violations().empty()) break;
    }
    outcome_.violations = oracle_.violations();
    outcome_.digest = world_.digest();
    return outcome_;
  }

 private:
  /// This run, and those that begin before its last rank is through.
  void play_runs(std::size_t number);
  void start_job(std::size_t number, bool overlaps);
  void await_stragglers(const Job& job);
  void await_loss(Job& job);
  void lose_nodes(Job& job);
  void lose_of_each_set(Job& job);
  void lose(Job& job, const std::string& node);
  void damage_a_file();
  void forget_lost_numbers(std::size_t run);
  void check_run(Job& job);
  void check_opening(const Job& job);
  void check_newest(const SharedRun& shared);
  void check_space(const Job& job);
  void check_proofs(const Job& job, const RestoreEvent& event);
  void check_copies(const Job& job);
  void check_global(const SharedRun& shared);
  void check_removal(const std::string& path);
  void end_run(Job& job);

  HistoryPlan plan_;
  World world_;
  Oracle oracle_;
  os::MemoryFiles disk_;
  /// Flipped bits of files that no session has a reason to look at.
  std::vector<std::pair<std::string, std::uint64_t>> hidden_damage_;
  std::vector<std::unique_ptr<Job>> jobs_;
  HistoryOutcome outcome_;
};

void History::play_runs(std::size_t number) {
  jobs_.clear();
  start_job(number, false);
  world_.scheduler().run();
  for (const auto& job : jobs_) {
    oracle_.speak_of(job->shared.number);
    check_run(*job);
    outcome_.stopped += job->shared.stopped;
  }
  outcome_.operations += world_.points();
  end_run(*jobs_.back());
}

void History::start_job(std::size_t number, bool overlaps) {
  const RunPlan& plan = plan_.runs[number];
  world_.trace(
      "---- restart {}: {} ranks, block {}, keep {}, segments {}, late {}, {} kills, {} "
      "faults, end {}",
      number, plan_.ranks, plan.block_bytes, plan_.keep, plan_.segments, plan_.late,
      plan.kills.size(), plan.faults.size(), static_cast<int>(plan.end));
  if (plan_.replicas)
    world_.trace("---- {}, dedup {}, {} ranks per node, rotated by {}, levels {}",
                 name_of(plan.level), plan_.dedup, *plan.ranks_per_node, plan.rotation,
                 plan.levels);
  oracle_.speak_of(number);
  outcome_.operations += world_.points();
  world_.start_run(plan_.ranks, plan.kills);
  jobs_.push_back(std::make_unique<Job>());
  Job& job = *jobs_.back();
  job.overlaps = overlaps;
  job.hub = std::make_unique<SimHub>(world_, plan_.ranks, [=, this](const std::string& complaint) {
    oracle_.violation("restart {}: {}", number, complaint);
  });
  SharedRun& shared = job.shared;
  shared.world = &world_;
  shared.oracle = &oracle_;
  shared.disk = &disk_;
  shared.history = &plan_;
  shared.plan = &plan;
  shared.hub = job.hub.get();
  shared.number = number;
  shared.census = take_census(disk_, plan_.ranks);
  if (plan_.replicas) {
    shared.walk = walk_store(disk_, plan_.ranks);
    for (const std::string& stripe : shared.walk.wrong_stripes)
      oracle_.violation("restart {}: the parity of {} is wrong", number, stripe);
    oracle_.set_copies(number, plan_.tiers ? 1 : plan.level.losses() + 1);
    if (!plan_.tiers) oracle_.set_sets(number, sets_of(plan_, plan));
    if (plan_.tiers) oracle_.set_global(number, plan.global_every);
    if (plan_.tiers) check_global(shared);
  }
  for (Rank rank = 0; rank < plan_.ranks; ++rank) shared.processes.push_back(&world_.process(rank));
  for (Rank rank = 0; rank < plan_.ranks; ++rank) {
    job.ranks.push_back(std::make_unique<RankRun>(shared, rank));
    world_.scheduler().spawn(fmt::format("job{}rank{}", number, rank), [&job, rank] {
      job.ranks[rank]->play();
      ++job.shared.ended;
    });
  }
  if (plan.leaves_stragglers)
    world_.scheduler().spawn("successor", [this, &job] { await_stragglers(job); });
  if (plan.loss && plan.loss->point)
    world_.scheduler().spawn("loss", [this, &job] { await_loss(job); });
}

/// The next run begins as soon as a rank of this one was killed, or somewhat later.
void History::await_stragglers(const Job& job) {
  Scheduler& scheduler = world_.scheduler();
  const SharedRun& shared = job.shared;
  const auto ended = [&] { return shared.ended == plan_.ranks; };
  scheduler.wait_until([&] { return shared.any_killed() || ended(); });
  SimRandom& random = world_.random();
  const std::uint64_t delay_ns = random.below(random.one_in(4) ? 30'000'000'000 : 2'000'000);
  // Else they would have done all that they can without their peers before the next run is ready.
  for (Process* process : shared.processes)
    process->stalled_until_ns = scheduler.now_ns() + delay_ns + random.below(5'000'000);
  scheduler.wait_until(ended, scheduler.now_ns() + delay_ns);
  if (ended()) return;
  ++outcome_.overlaps;
  start_job(shared.number + 1, true);
}

void History::await_loss(Job& job) {
  SharedRun& shared = job.shared;
  const std::uint64_t point = *shared.plan->loss->point;
  world_.scheduler().wait_until(
      [&] { return world_.points() >= point || shared.ended == plan_.ranks; });
  lose_nodes(job);
}

void History::lose_nodes(Job& job) {
  if (job.shared.plan->loss->of_each_set) return lose_of_each_set(job);
  for (std::uint64_t i = 0; i < job.shared.plan->loss->nodes; ++i)
    if (const std::string node = any_node(disk_, world_.random()); !node.empty()) lose(job, node);
}

void History::lose_of_each_set(Job& job) {
  const RunPlan& plan = *job.shared.plan;
  for (std::vector<std::string>& set : sets_of(plan_, plan))
    for (std::uint32_t i = 0; i < plan.level.losses(); ++i) {
      std::swap(set[i], set[i + world_.random().below(set.size() - i)]);
      lose(job, set[i]);
    }
  ++outcome_.set_losses;
}

void History::lose(Job& job, const std::string& node) {
  const DamageDone done = lose_node(disk_, node);
  if (done.what.empty()) return;
  world_.trace("{}", done.what);
  ++outcome_.losses;
  oracle_.speak_of(job.shared.number);
  if (plan_.replicas) {
    oracle_.damage({}, done.settled_mark);
    oracle_.wound(node, false);
    std::erase_if(hidden_damage_, [&](const auto& flipped) {
      return flipped.first.find("/" + node + "/") != std::string::npos;
    });
  } else {
    oracle_.damage(done.versions, done.settled_mark);
    if (job.shared.ended < plan_.ranks) oracle_.damage_begun();
  }
  forget_lost_numbers(job.shared.number);
  job.shared.node_was_lost = true;
  const RunPlan& plan = *job.shared.plan;
  if (!plan.loss->kills) return;
  for (Process* process : job.shared.processes)
    if (!plan.ranks_per_node || node == "node-" + node_of(plan_, plan, process->rank))
      world_.kill(*process);
}

void History::damage_a_file() {
  const DamageDone done = damage_store(disk_, world_.random());
  world_.trace("damage: {}", done.what);
  if (done.what.empty()) return;
  if (!plan_.replicas) return oracle_.damage(done.versions, done.settled_mark);
  oracle_.damage({}, done.settled_mark);
  const std::string directory = done.path.substr(0, done.path.rfind('/'));
  if (is_global(done.path)) oracle_.damage_global();
  oracle_.wound(directory.substr(directory.rfind('/') + 1), done.hidden.has_value());
  if (done.hidden) hidden_damage_.push_back({done.path, *done.hidden});
}

/// Of runs before this one.
void History::forget_lost_numbers(std::size_t run) {
  oracle_.forget_above(take_census(disk_, plan_.ranks).highest_number, run);
}

void History::end_run(Job& job) {
  const RunPlan& plan = *job.shared.plan;
  disk_.set_capacity(1ull << 40);
  if (plan.end == End::power_cut) {
    world_.trace("power cut");
    disk_.power_cut(world_.random());
  }
  if (plan.loss && !plan.loss->point) lose_nodes(job);
  for (std::uint64_t i = 0; i < plan.damages; ++i) damage_a_file();
  if (oracle_.any_damage()) forget_lost_numbers(job.shared.number + 1);
}

void History::check_run(Job& job) {
  SharedRun& shared = job.shared;
  check_opening(job);
  for (std::size_t index = 0; index < shared.events.size(); ++index) {
    RestoreEvent& event = shared.events[index];
    event.disturbed = event.disturbed ||
                      std::any_of(event.ranks.begin(), event.ranks.end(),
                                  [](const RestoreEvent::Part& part) { return !part.returned; });
    oracle_.check_restore(event, index);
    if (plan_.replicas) check_proofs(job, event);
    if (event.result()) ++outcome_.restores;
  }
  outcome_.healings += shared.healings;
  check_newest(shared);
  if (plan_.replicas)
    check_copies(job);
  else
    check_space(job);
  outcome_.checkpoints += static_cast<std::uint64_t>(
      std::count_if(shared.plan->acts.begin(), shared.plan->acts.end(),
                    [](Act act) { return act == Act::checkpoint || act == Act::pieces; }));
}

void History::check_opening(const Job& job) {
  const SharedRun& shared = job.shared;
  if (shared.any_killed() || shared.plan->early_faults) return;
  for (Rank rank = 0; rank < plan_.ranks; ++rank) {
    const auto& opened = job.ranks[rank]->opened();
    if (opened.has_value() != job.ranks[0]->opened().has_value())
      oracle_.violation("restart {}: open() succeeds on some ranks only", shared.number);
    if (!opened && job.overlaps && opened.error().code() == Code::busy) continue;
    if (!opened && !oracle_.any_damage())
      oracle_.violation("restart {}: rank {}: open() fails: {}", shared.number, rank,
                        opened.error().message());
  }
}

/// restore() must give the newest of the versions that restore(Version) gave.
void History::check_newest(const SharedRun& shared) {
  Version newest = 0;
  for (const RestoreEvent& event : shared.events) {
    if (event.disturbed) return;
    const Version version = event.result().value_or(0);
    if (event.asked)
      newest = std::max(newest, version);
    else if (version < newest)
      oracle_.violation("restart {}: restore() gives version {}, but restore({}) succeeds",
                        shared.number, version, newest);
  }
}

void History::check_space(const Job& job) {
  const SharedRun& shared = job.shared;
  // Enough new versions, so that none of what lay there before may stay.
  const auto closed_after_enough = [&](const auto& rank) {
    const auto& seen = rank->seen();
    const Version newest_before =
        shared.census.versions.empty() ? 0 : *shared.census.versions.rbegin();
    return rank->closed() && std::distance(seen.upper_bound(newest_before), seen.end()) >
                                 static_cast<int>(plan_.keep);
  };
  const bool clean = shared.plan->faults.empty() && !shared.plan->room_bytes &&
                     (shared.restored || !shared.census.traces()) && !shared.any_killed() &&
                     !oracle_.any_damage() && jobs_.size() == 1 &&
                     std::all_of(job.ranks.begin(), job.ranks.end(), closed_after_enough);
  if (!clean) return;
  const StoreCensus census = take_census(disk_, plan_.ranks);
  if (census.temporaries > 0)
    oracle_.violation("restart {}: {} temporary files are left", shared.number, census.temporaries);
  for (Rank rank = 0; rank < plan_.ranks; ++rank) {
    if (census.manifests[rank] > plan_.keep + 2)
      oracle_.violation("restart {}: rank {} has {} manifests, but keep is {}", shared.number, rank,
                        census.manifests[rank], plan_.keep);
    if (census.segments[rank] > plan_.segments + plan_.keep + 2)
      oracle_.violation("restart {}: rank {} has {} segments, but a version may have {}",
                        shared.number, rank, census.segments[rank], plan_.segments);
  }
}

/// What is whole on the disk must come back, and nothing else can.
void History::check_proofs(const Job& job, const RestoreEvent& event) {
  const auto& loss = job.shared.plan->loss;
  if (event.disturbed || !event.at_start || jobs_.size() > 1 || (loss && loss->point)) return;
  const StoreWalk& walk = job.shared.walk;
  const auto newest = walk.newest_provable();
  const auto given = event.result();
  if (event.asked ? walk.provable(*event.asked) == given.has_value()
                  : given == (newest ? std::optional(newest->version) : std::nullopt))
    return;
  if (!event.asked && given && newest && *given > newest->version &&
      oracle_.may_do_with_less(event, *given))
    return;
  oracle_.violation("restart {}: restore({}) gives version {}, but {} is whole", event.run,
                    event.asked.value_or(0), given.value_or(0),
                    event.asked ? "another set of versions"
                                : fmt::format("version {}", newest ? newest->version : 0));
}

/// A version of which all manifests are on the global tier is there with all of its blocks,
/// whatever happened.
void History::check_global(const SharedRun& shared) {
  if (oracle_.global_is_damaged()) return;
  for (const auto& [key, version] : shared.walk.versions)
    if (version.on_global.size() == plan_.ranks && !version.global_whole)
      oracle_.violation(
          "restart {}: all manifests of version {} are on the global tier, but not "
          "all of its blocks",
          shared.number, key.version);
}

/// A file has gone from the global tier, and nothing else may be durable but what must be. A
/// version that existed may go in parts, but what can be seen of it is whole.
void History::check_removal(const std::string& path) {
  if (!is_global(path) || !has_blocks(path) || oracle_.global_is_damaged()) return;
  const auto left = disk_.durable();
  static_cast<void>(left->erase(path));
  for (const auto& [key, version] : walk_store(*left, plan_.ranks).versions) {
    const Attempt* attempt = oracle_.find(key.version);
    // A straggler may have voted when the next run knew all versions.
    const bool late = attempt ? plan_.runs[attempt->run].leaves_stragglers : outcome_.overlaps > 0;
    const bool existed = attempt && attempt->global;
    const bool exists = version.on_global.size() == plan_.ranks && !late;
    if ((exists || existed) && !version.global_blocks)
      oracle_.violation("{} goes, but manifests of version {} that count on it do not", path,
                        key.version);
  }
  ++outcome_.removals;
}

/// After a clean end: each block on as many nodes as was asked for, and nothing superfluous.
void History::check_copies(const Job& job) {
  const SharedRun& shared = job.shared;
  // What earlier runs left stays until a run has restored.
  const bool leftovers = shared.census.traces() || shared.census.copies > 0;
  const bool clean =
      shared.plan->faults.empty() && !shared.plan->room_bytes && !shared.any_killed() &&
      (shared.restored || !leftovers) && jobs_.size() == 1 &&
      !(shared.plan->loss && shared.plan->loss->point) &&
      std::all_of(job.ranks.begin(), job.ranks.end(), [](const auto& r) { return r->closed(); });
  if (!clean) return;
  ++outcome_.walks;
  // A file that is gone is not flipped, neither here nor back.
  const auto flip_hidden = [&] {
    for (const auto& [path, bit] : hidden_damage_) static_cast<void>(disk_.flip(path, bit));
  };
  flip_hidden();
  StoreWalk walk = walk_store(disk_, plan_.ranks);
  flip_hidden();
  bool made = false;  // by this run
  for (const auto& [key, version] : walk.versions) {
    const Attempt* attempt = oracle_.find(key.version);
    if (!attempt || attempt->run != shared.number) continue;
    made = true;
    const std::uint32_t copies = plan_.tiers ? version.level.losses() + 1 : attempt->copies;
    const auto& voted = plan_.tiers ? version.on_nodes : version.manifests;
    if (voted.size() == plan_.ranks && version.least_nodes < copies)
      oracle_.violation("restart {}: {} of version {} is on {} nodes instead of {}", shared.number,
                        version.rarest, key.version, version.least_nodes, copies);
  }
  if (!made) return;
  // Nothing goes that is older than a version which was found only in part.
  for (const auto& [key, version] : walk.versions)
    if (!version.provable) walk.dead.erase(walk.dead.begin(), walk.dead.upper_bound(key));
  walk.dead.erase(walk.dead.begin(), walk.dead.upper_bound(walk.unread));
  if (walk.dead.size() > 1)
    oracle_.violation("restart {}: files of {} versions are left that nobody counts on, first {}",
                      shared.number, walk.dead.size(), walk.dead.begin()->second);
  // On nodes, of the stronger level, and on the global tier. What cannot be restored stays until
  // enough of what can is newer.
  const std::uint64_t kinds = plan_.tiers ? 3 : 1;
  const auto whole = static_cast<std::uint64_t>(
      std::count_if(walk.versions.begin(), walk.versions.end(),
                    [](const auto& entry) { return entry.second.provable; }));
  if (whole > kinds * plan_.keep + 2)
    oracle_.violation("restart {}: {} versions are left, but keep is {}", shared.number, whole,
                      plan_.keep);
}

}  // namespace

HistoryOutcome run_history(std::uint64_t seed, TaskThreads& threads, bool verbose,
                           HistoryKind kind) {
  return History(seed, threads, verbose, kind).play();
}

}  // namespace belay::simulator
