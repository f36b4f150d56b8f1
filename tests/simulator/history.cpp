// SPDX-License-Identifier: Apache-2.0
#include "simulator/history.hpp"

#include "simulator/rank_run.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace belay::simulator {

namespace {

// Many times what the longest history needs.
constexpr std::uint64_t kMostYields = 2'000'000;

class History {
 public:
  History(std::uint64_t seed, TaskThreads& threads, bool verbose)
      : plan_(make_plan(seed)),
        world_(seed, plan_.switch_in, threads, verbose),
        oracle_(plan_.ranks, plan_.keep) {}

  HistoryOutcome play() {
    world_.scheduler().on_hang(kMostYields, [this](const std::string& why) {
      oracle_.violation("hang: {}", why);
      world_.kill_all();
    });
    for (std::size_t number = 0; number < plan_.runs.size(); ++number) {
      play_run(number);
      if (!oracle_.violations().empty()) break;
    }
    outcome_.violations = oracle_.violations();
    outcome_.digest = world_.digest();
    return outcome_;
  }

 private:
  void play_run(std::size_t number);
  void check_run(SharedRun& shared, const std::vector<std::unique_ptr<RankRun>>& ranks);
  void check_opening(const SharedRun& shared, const std::vector<std::unique_ptr<RankRun>>& ranks);
  void check_newest(const SharedRun& shared);
  void check_space(const SharedRun& shared, const std::vector<std::unique_ptr<RankRun>>& ranks);
  void end_run(const RunPlan& plan);

  HistoryPlan plan_;
  World world_;
  Oracle oracle_;
  os::MemoryFiles disk_;
  HistoryOutcome outcome_;
};

void History::play_run(std::size_t number) {
  const RunPlan& plan = plan_.runs[number];
  world_.trace(
      "---- restart {}: {} ranks, block {}, keep {}, segments {}, late {}, {} kills, {} "
      "faults, end {}",
      number, plan_.ranks, plan.block_bytes, plan_.keep, plan_.segments, plan_.late,
      plan.kills.size(), plan.faults.size(), static_cast<int>(plan.end));
  oracle_.start_run(number);
  world_.start_run(plan_.ranks, plan.kills);
  SimHub hub(world_, plan_.ranks, [&](const std::string& complaint) {
    oracle_.violation("restart {}: {}", number, complaint);
  });
  SharedRun shared;
  shared.world = &world_;
  shared.oracle = &oracle_;
  shared.disk = &disk_;
  shared.history = &plan_;
  shared.plan = &plan;
  shared.hub = &hub;
  shared.number = number;
  shared.census = take_census(disk_, plan_.ranks);

  std::vector<std::unique_ptr<RankRun>> ranks;
  for (Rank rank = 0; rank < plan_.ranks; ++rank) {
    ranks.push_back(std::make_unique<RankRun>(shared, rank));
    world_.scheduler().spawn(fmt::format("rank{}", rank), [&, rank] { ranks[rank]->play(); });
  }
  world_.scheduler().run();
  check_run(shared, ranks);
  outcome_.operations += world_.points();
  end_run(plan);
}

void History::end_run(const RunPlan& plan) {
  disk_.set_capacity(1ull << 40);
  if (plan.end == End::power_cut) {
    world_.trace("power cut");
    disk_.power_cut(world_.random());
  }
  for (std::uint64_t i = 0; i < plan.damages; ++i) {
    const DamageDone done = damage_store(disk_, world_.random());
    world_.trace("damage: {}", done.what);
    if (!done.what.empty()) oracle_.damage(done.versions, done.settled_mark);
  }
}

void History::check_run(SharedRun& shared, const std::vector<std::unique_ptr<RankRun>>& ranks) {
  check_opening(shared, ranks);
  for (RestoreEvent& event : shared.events) {
    event.disturbed = event.disturbed ||
                      std::any_of(event.ranks.begin(), event.ranks.end(),
                                  [](const RestoreEvent::Part& part) { return !part.returned; });
    oracle_.check_restore(event);
    if (event.result()) ++outcome_.restores;
  }
  check_newest(shared);
  check_space(shared, ranks);
  outcome_.checkpoints += static_cast<std::uint64_t>(
      std::count_if(shared.plan->acts.begin(), shared.plan->acts.end(),
                    [](Act act) { return act == Act::checkpoint || act == Act::pieces; }));
}

void History::check_opening(const SharedRun& shared,
                            const std::vector<std::unique_ptr<RankRun>>& ranks) {
  if (world_.any_killed() || shared.plan->early_faults) return;
  for (Rank rank = 0; rank < plan_.ranks; ++rank) {
    const auto& opened = ranks[rank]->opened();
    if (opened.has_value() != ranks[0]->opened().has_value())
      oracle_.violation("restart {}: open() succeeds on some ranks only", shared.number);
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

void History::check_space(const SharedRun& shared,
                          const std::vector<std::unique_ptr<RankRun>>& ranks) {
  // Enough new versions, so that none of what lay there before may stay.
  const auto closed_after_enough = [&](const auto& rank) {
    const auto& seen = rank->seen();
    const Version newest_before =
        shared.census.versions.empty() ? 0 : *shared.census.versions.rbegin();
    return rank->closed() && std::distance(seen.upper_bound(newest_before), seen.end()) >
                                 static_cast<int>(plan_.keep);
  };
  const bool clean = shared.plan->faults.empty() && !shared.plan->room_bytes &&
                     (shared.restored || !shared.census.traces()) && !world_.any_killed() &&
                     !oracle_.any_damage() &&
                     std::all_of(ranks.begin(), ranks.end(), closed_after_enough);
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

}  // namespace

HistoryOutcome run_history(std::uint64_t seed, TaskThreads& threads, bool verbose) {
  return History(seed, threads, verbose).play();
}

}  // namespace belay::simulator
