// SPDX-License-Identifier: Apache-2.0
#include "simulator/plan.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

namespace belay::simulator {

namespace {

using Kind = os::Operation::Kind;

constexpr std::uint32_t bit(Kind kind) { return 1u << static_cast<unsigned>(kind); }

constexpr std::uint32_t kWrites = bit(Kind::create) | bit(Kind::write) | bit(Kind::sync) |
                                  bit(Kind::reserve) | bit(Kind::truncate) | bit(Kind::close) |
                                  bit(Kind::rename) | bit(Kind::rename_new) |
                                  bit(Kind::sync_directory);
constexpr std::uint32_t kAll = ~0u;

// Roughly how many operations a rank performs, so that kills and faults are spread over a run.
constexpr std::uint64_t kPointsToOpen = 50;
constexpr std::uint64_t kPointsOfAct = 18;

Fault make_fault(SimRandom& random, const HistoryPlan& history, std::uint64_t acts) {
  static constexpr std::uint32_t kKinds[] = {
      bit(Kind::write),
      bit(Kind::sync),
      bit(Kind::rename) | bit(Kind::rename_new),
      bit(Kind::create),
      bit(Kind::sync_directory),
      bit(Kind::remove) | bit(Kind::touch),
      bit(Kind::close),
      kWrites,
      kAll,
  };
  Fault fault;
  fault.rank = static_cast<Rank>(random.below(history.ranks));
  fault.kinds = random.pick(std::span<const std::uint32_t>(kKinds));
  fault.skip = random.below(1 + acts * (fault.kinds == kAll || fault.kinds == kWrites ? 12 : 2));
  fault.count = random.one_in(3) ? ~0ull : random.between(1, 3);
  fault.action.error = random.one_in(3) ? ENOSPC : EIO;
  fault.action.torn = random.one_in(2);
  fault.action.after = random.one_in(4);
  return fault;
}

void add_kills(SimRandom& random, const HistoryPlan& history, RunPlan& run) {
  const std::uint64_t points = kPointsToOpen + kPointsOfAct * run.acts.size();
  const auto manner = [&] { return static_cast<Manner>(random.below(3)); };
  if (run.end == End::power_cut || random.one_in(3)) {
    run.kills.push_back({{}, 1 + random.below(points * history.ranks), manner()});
    return;
  }
  const auto first = static_cast<Rank>(random.below(history.ranks));
  const std::uint64_t at = 1 + random.below(points);
  run.kills.push_back({first, at, manner()});
  for (Rank rank = 0; rank < history.ranks; ++rank)
    if (rank != first && random.one_in(2))
      run.kills.push_back({rank, at + random.below(30), manner()});
}

RunPlan make_run(SimRandom& random, const HistoryPlan& history, bool last) {
  static constexpr Act kActs[] = {
      Act::checkpoint, Act::checkpoint, Act::checkpoint, Act::checkpoint, Act::checkpoint,
      Act::checkpoint, Act::pieces,     Act::pieces,     Act::if_due,     Act::if_due,
      Act::wait,       Act::wait,       Act::go_back,    Act::nothing,    Act::nothing};
  static constexpr End kEnds[] = {End::close,     End::close,     End::abandon,
                                  End::kills,     End::kills,     End::kills,
                                  End::power_cut, End::power_cut, End::power_cut};
  RunPlan run;
  run.seed = random.next();
  if (random.one_in(10)) run.block_bytes = 1024;
  if (random.one_in(16)) run.hash = "md5";
  if (random.one_in(2)) run.ranks_per_node = 1;
  for (std::uint64_t acts = random.between(1, last ? 3 : 12); acts > 0; --acts)
    run.acts.push_back(random.pick(std::span<const Act>(kActs)));
  run.end = last ? End::close : random.pick(std::span<const End>(kEnds));
  if (run.end == End::kills || run.end == End::power_cut) add_kills(random, history, run);
  if (!last && random.one_in(3)) {
    for (std::uint64_t faults = random.between(1, 3); faults > 0; --faults)
      run.faults.push_back(make_fault(random, history, run.acts.size()));
    run.early_faults = random.one_in(8);
  }
  if (!last && random.one_in(12)) run.room_bytes = random.below(64 << 10);
  run.probe_usable = random.one_in(2);
  run.ask_for_newer = random.one_in(4);
  run.exact_regions = random.one_in(2);
  run.start_over = random.one_in(2);
  if (random.one_in(6)) run.damages = random.one_in(4) ? 2 : 1;
  return run;
}

/// Rank 0 is killed, and with it the holder of a lock; the last rank lives on.
void add_stragglers(SimRandom& random, HistoryPlan& plan, std::size_t number) {
  RunPlan& run = plan.runs[number];
  run.leaves_stragglers = true;
  const std::uint64_t points = kPointsToOpen + kPointsOfAct * run.acts.size();
  const std::uint64_t at = 1 + random.below(points);
  run.kills.clear();
  for (Rank rank = 0; rank + 1 < plan.ranks; ++rank)
    if (rank == 0 || random.one_in(3))
      run.kills.push_back({rank, at + random.below(20), static_cast<Manner>(random.below(3))});
  if (random.one_in(2)) plan.timeout_ns = 5'000'000'000;  // less than a lock is waited for
  plan.runs[number + 1].room_bytes.reset();
  // A vote may come between the look at versions() and restore().
  plan.runs[number + 1].exact_regions = false;
  run.room_bytes.reset();
  // What is damaged and what a straggler did could not be told apart.
  for (std::size_t later = number; later < plan.runs.size(); ++later) plan.runs[later].damages = 0;
}

void add_loss(SimRandom& random, const HistoryPlan& history, RunPlan& run) {
  run.loss.emplace();
  if (random.one_in(2))
    run.loss->point =
        random.below((kPointsToOpen + kPointsOfAct * run.acts.size()) * history.ranks);
  run.loss->kills = random.one_in(2);
}

/// From numbers of its own, so that the rest of a history does not depend on it.
void add_disasters(HistoryPlan& plan) {
  SimRandom random(sub_seed(plan.seed, 4));
  bool stragglers = false;
  for (std::size_t number = 0; number + 1 < plan.runs.size(); ++number) {
    RunPlan& run = plan.runs[number];
    if (plan.ranks > 1 && run.end == End::kills && random.one_in(2)) {
      add_stragglers(random, plan, number);
      stragglers = true;
    } else if (!stragglers && random.one_in(12)) {
      add_loss(random, plan, run);
    }
  }
}

Level some_copies(std::uint64_t copies) {
  return Level::replicas(static_cast<std::uint8_t>(copies));
}

/// erasure:k+m with k + m <= nodes.
Level any_scheme(SimRandom& random, Rank nodes) {
  constexpr std::uint64_t kMostWidth = 9;
  constexpr std::uint64_t kMostShards = 3;
  const std::uint64_t width = random.between(2, std::min<std::uint64_t>(nodes, kMostWidth));
  const std::uint64_t shards = random.between(1, std::min(width - 1, kMostShards));
  return Level::erasure(static_cast<std::uint8_t>(width - shards),
                        static_cast<std::uint8_t>(shards));
}

/// Which nodes there are, and how many of them each block is on. Not the same in all runs.
void place_ranks(SimRandom& random, HistoryPlan& plan) {
  constexpr std::uint64_t kMostPerNode = 3;
  const auto nodes = [&](std::uint64_t per_node) { return (plan.ranks + per_node - 1) / per_node; };
  const auto most = std::min<std::uint64_t>(plan.ranks, 4);
  const auto usual_copies = random.between(random.one_in(6) ? 1 : 2, most);
  const Level usual = plan.erasure ? any_scheme(random, plan.ranks) : some_copies(usual_copies);
  const std::uint64_t usual_per_node = random.one_in(2) ? 1 : random.between(1, kMostPerNode);
  for (RunPlan& run : plan.runs) {
    run.level = random.one_in(8) ? some_copies(random.between(1, most)) : usual;
    if (plan.erasure && random.one_in(8)) run.level = any_scheme(random, plan.ranks);
    std::uint64_t per_node = random.one_in(4) ? random.between(1, kMostPerNode) : usual_per_node;
    while (nodes(per_node) < std::max(run.level.least_nodes(), 2u)) --per_node;
    run.ranks_per_node = per_node;
    if (random.one_in(4)) run.rotation = random.below(plan.ranks);
  }
}

/// Early in a run ranks restore and heal.
void add_losses(SimRandom& random, HistoryPlan& plan) {
  for (std::size_t number = 0; number + 1 < plan.runs.size(); ++number) {
    RunPlan& run = plan.runs[number];
    run.loss.reset();
    if (run.leaves_stragglers || (number > 0 && plan.runs[number - 1].leaves_stragglers)) continue;
    if (!random.one_in(2)) continue;
    add_loss(random, plan, run);
    if (run.loss->point && random.one_in(2))
      run.loss->point = random.below(2 * kPointsToOpen * plan.ranks);
    if (run.level.losses() > 0 && random.one_in(2))
      run.loss->nodes = random.between(1, run.level.losses() + 1);
  }
}

HistoryPlan make_replica_plan(std::uint64_t seed, bool erasure) {
  static constexpr const char* kDedups[] = {"none", "local", "collective", "collective",
                                            "collective-unshuffled"};
  SimRandom random(sub_seed(seed, 6));
  HistoryPlan plan;
  plan.seed = seed;
  plan.replicas = true;
  plan.erasure = erasure;
  plan.ranks = static_cast<Rank>(random.between(2, random.one_in(8) ? 12 : erasure ? 6 : 5));
  plan.keep = random.between(1, 3);
  plan.segments = random.between(2, 6);
  plan.dedup = random.pick(std::span<const char* const>(kDedups));
  plan.late = random.one_in(4) ? "skip" : "wait";
  plan.background = !random.one_in(3);
  plan.tracker = random.one_in(2);
  plan.switch_in = random.one_in(3) ? 4 : 16;
  const std::uint64_t runs = random.between(2, 5);
  for (std::uint64_t run = 0; run < runs; ++run)
    plan.runs.push_back(make_run(random, plan, run + 1 == runs));
  add_disasters(plan);
  place_ranks(random, plan);
  add_losses(random, plan);
  return plan;
}

/// Parity over few nodes, so that there are several sets, and losses of all that may be lost of
/// each. From numbers of their own, so that the rest of a history does not depend on them.
void form_sets(HistoryPlan& plan) {
  constexpr std::uint64_t kLeastNodes = 4;
  SimRandom random(sub_seed(plan.seed, 10));
  if (random.one_in(2)) return;
  const Level narrow = random.one_in(2) ? Level::erasure(1, 1) : Level::erasure(2, 1);
  for (RunPlan& run : plan.runs) {
    if (plan.ranks >= kLeastNodes && random.one_in(2)) run.ranks_per_node = 1;
    if ((plan.ranks + *run.ranks_per_node - 1) / *run.ranks_per_node >= 2 * narrow.least_nodes())
      run.level = narrow;
    if (run.loss && run.level.has_parity() && sets_of(plan, run).size() > 1)
      run.loss->of_each_set = random.one_in(2);
  }
}

/// On nodes: of versions some have the strongest one.
std::string any_levels(SimRandom& random, const Level& strongest, bool always_local) {
  if (strongest.losses() == 0) return "local:1";
  std::string levels = always_local ? "local:1," : "";
  if (strongest.kind == Level::Kind::erasure && random.one_in(2))
    levels += fmt::format("replicas:2:{},", random.between(1, 2));
  return levels + fmt::format("{}:{}", name_of(strongest), random.between(1, 3));
}

/// Levels and a global tier, from numbers of their own.
HistoryPlan make_tier_plan(std::uint64_t seed, bool always_diskless) {
  SimRandom random(sub_seed(seed, 7));
  HistoryPlan plan = make_replica_plan(seed, random.one_in(2));
  plan.tiers = true;
  const bool diskless = random.one_in(8) || always_diskless;
  const bool one_node = always_diskless && random.one_in(2);
  const bool always_local = random.one_in(2);
  for (RunPlan& run : plan.runs) {
    run.global_every = random.between(1, 4);
    if (diskless) {
      run.levels = "global:1";
      run.global_every = 1;
      if (one_node) run.ranks_per_node.reset();
      continue;
    }
    run.levels = any_levels(random, run.level, always_local);
    run.levels += fmt::format(",global:{}", run.global_every);
    if (run.loss && random.one_in(2)) run.loss->nodes = plan.ranks;
  }
  return plan;
}

}  // namespace

namespace {

HistoryPlan make_plan_without_codecs(std::uint64_t seed, HistoryKind kind) {
  SimRandom share(sub_seed(seed, 5));
  if (kind == HistoryKind::any && share.one_in(4)) kind = HistoryKind::replicas;
  if (kind == HistoryKind::any && share.one_in(8)) kind = HistoryKind::tiers;
  if (kind == HistoryKind::any && share.one_in(8)) kind = HistoryKind::erasure;
  if (kind == HistoryKind::replicas || kind == HistoryKind::erasure) {
    HistoryPlan plan = make_replica_plan(seed, kind == HistoryKind::erasure);
    if (plan.erasure) form_sets(plan);
    return plan;
  }
  if (kind == HistoryKind::tiers || kind == HistoryKind::diskless)
    return make_tier_plan(seed, kind == HistoryKind::diskless);
  SimRandom random(sub_seed(seed, 3));
  HistoryPlan plan;
  plan.seed = seed;
  plan.ranks = static_cast<Rank>(random.between(1, 4));
  plan.keep = random.between(1, 3);
  plan.segments = random.between(2, 6);
  plan.dedup = random.one_in(3) ? "none" : "local";
  plan.late = random.one_in(4) ? "skip" : "wait";
  plan.background = !random.one_in(3);
  plan.tracker = random.one_in(2);
  static constexpr std::uint64_t kSwitch[] = {2, 4, 4, 16};
  plan.switch_in = random.pick(std::span<const std::uint64_t>(kSwitch));
  const std::uint64_t runs = random.between(2, 5);
  for (std::uint64_t run = 0; run < runs; ++run)
    plan.runs.push_back(make_run(random, plan, run + 1 == runs));
  add_disasters(plan);
  return plan;
}

}  // namespace

/// Codecs and sets come from numbers of their own, so that all else stays what it was without them.
HistoryPlan make_plan(std::uint64_t seed, HistoryKind kind) {
  HistoryPlan plan = make_plan_without_codecs(seed, kind);
  SimRandom random(sub_seed(seed, 9));
  static constexpr const char* kCodecs[] = {"raw", "auto", "lz4", "shuffle-zstd", "lorenzo-zstd"};
  for (RunPlan& run : plan.runs) {
    run.codec = random.pick(std::span<const char* const>(kCodecs));
    run.aggregate = random.between(1, 4);
  }
  // Sets reach over nodes in the background, inside calls, or not at all.
  SimRandom spread(sub_seed(seed, 11));
  plan.one_thread = spread.one_in(2);
  for (RunPlan& run : plan.runs)
    if (spread.one_in(3)) run.aggregate.reset();
  return plan;
}

std::string node_of(const HistoryPlan& history, const RunPlan& run, Rank rank) {
  const std::uint64_t place = (rank + run.rotation) % history.ranks;
  return std::to_string(place / run.ranks_per_node.value_or(history.ranks));
}

std::vector<std::vector<std::string>> sets_of(const HistoryPlan& history, const RunPlan& run) {
  std::vector<std::string> nodes;
  for (Rank rank = 0; rank < history.ranks; ++rank)
    if (const std::string node = "node-" + node_of(history, run, rank);
        std::find(nodes.begin(), nodes.end(), node) == nodes.end())
      nodes.push_back(node);
  std::vector<std::vector<std::string>> sets(
      run.level.has_parity() ? nodes.size() / run.level.least_nodes() : 1);
  for (std::size_t i = 0; i < nodes.size(); ++i) sets[i % sets.size()].push_back(nodes[i]);
  return sets;
}

}  // namespace belay::simulator
