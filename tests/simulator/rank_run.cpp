// SPDX-License-Identifier: Apache-2.0
#include "simulator/rank_run.hpp"

#include "simulator/sim_files.hpp"
#include "simulator/sim_worker.hpp"

#include <algorithm>
#include <utility>

namespace belay::simulator {

namespace {

std::set<std::string> names_of(const VersionInfo& version) {
  std::set<std::string> names;
  for (const RegionInfo& region : version.regions) names.insert(region.name);
  return names;
}

}  // namespace

RestoreEvent& SharedRun::event(std::size_t index, std::optional<Version> asked) {
  while (events.size() <= index) {
    events.emplace_back();
    events.back().run = number;
    events.back().asked = asked;
    events.back().ranks.resize(history->ranks);
  }
  return events[index];
}

bool SharedRun::any_killed() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const Process* process) { return process->killed; });
}

RankRun::RankRun(SharedRun& shared, Rank rank)
    : shared_(&shared),
      world_(shared.world),
      plan_(shared.plan),
      rank_(rank),
      process_(shared.processes[rank]),
      clock_(*shared.world, *process_),
      random_(sub_seed(plan_->seed, 10 + rank)),
      choices_(sub_seed(plan_->seed, 20 + rank)),
      faulty_(*shared.disk, [this](const os::Operation& operation) { return decide(operation); }),
      files_(make_sim_files(*shared.world, *process_, faulty_)),
      application_(make_specs(shared.history->seed, rank), sub_seed(plan_->seed, 30 + rank)) {
  for (const Fault& fault : plan_->faults)
    if (fault.rank == rank) faults_.push_back(fault);
  faults_on_ = plan_->early_faults;
}

os::Action RankRun::decide(const os::Operation& operation) {
  if (!faults_on_) return {};
  for (Fault& fault : faults_) {
    if ((fault.kinds >> static_cast<unsigned>(operation.kind) & 1) == 0) continue;
    if (fault.skip > 0) {
      --fault.skip;
    } else if (fault.count > 0) {
      --fault.count;
      return fault.action;
    }
  }
  return {};
}

bool RankRun::undisturbed() const {
  return plan_->faults.empty() && !plan_->room_bytes && !shared_->any_killed() &&
         !(plan_->loss && plan_->loss->point);
}

/// About this rank's run: others may have spoken in between.
Oracle& RankRun::oracle() const {
  shared_->oracle->speak_of(shared_->number);
  return *shared_->oracle;
}

template <class T>
void RankRun::expect_success(const char* call, const Result<T>& result) {
  if (!result && undisturbed())
    oracle().violation("restart {}: rank {}: {} fails though nothing is wrong: {}", shared_->number,
                       rank_, call, result.error().message());
}

Result<Session> RankRun::open() {
  const HistoryPlan& history = *shared_->history;
  session::Seams seams;
  seams.files = files_.get();
  seams.clock = &clock_;
  seams.random = &random_;
  seams.make_worker = [this] {
    return shared_->history->background ? make_sim_worker(*world_, *process_)
                                        : session::make_inline_worker();
  };
  if (history.tracker)
    seams.make_tracker = [this] { return std::make_unique<SimTracker>(application_.log()); };
  else
    seams.make_tracker = capture::make_no_tracker;
  // Too little for the tables of two ranks: each has a bundle of its own.
  if (plan_->seed % 3 == 0) seams.drain_bytes = 1;
  seams.hash_threads = 1;
  seams.read_threads = 1;
  seams.host = "machine";
  seams.program = "simulated";
  seams.pid = 1000 + 10 * shared_->number + rank_;

  Options options;
  options.store = "/store";
  options.block = plan_->block_bytes;
  options.hash = plan_->hash;
  options.keep = history.keep;
  options.background = history.background ? "thread" : "inline";
  options.late = history.late;
  options.staging = "1MiB";
  options.segments = history.segments;
  options.timeout = std::chrono::nanoseconds(history.timeout_ns);
  options.dedup = history.dedup;
  options.interval = "2 calls";
  if (history.tiers) {
    options.levels = plan_->levels;
    options.global = "/global";
    options.codec = plan_->codec;
    if (plan_->aggregate) options.aggregate = *plan_->aggregate;
  } else {
    options.local_codec = plan_->codec;
  }
  if (history.replicas) {
    options.node = node_of(history, *plan_, rank_);
    if (plan_->level.losses() > 0 && !history.tiers) options.redundancy = name_of(plan_->level);
  } else if (plan_->ranks_per_node) {
    options.ranks_per_node = *plan_->ranks_per_node;
  }
  options.log = "debug";
  options.on_log = [this](LogLevel, std::string_view text) {
    world_->trace("rank {}: log: {}", rank_, text);
    if (text.find("was opened again") != std::string_view::npos) ++shared_->stopped;
  };
  return session::open_session(
      seams,
      [this](std::uint64_t timeout_ns, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
        return make_sim_group(*shared_->hub, *process_, timeout_ns, shared_->history->one_thread);
      },
      options);
}

void RankRun::play() {
  auto opened = open();
  if (process_->killed) return;
  if (!opened) {
    opened_ = Unexpected(opened.error());
    world_->trace("rank {}: open() fails: {}", rank_, opened.error().message());
    return;
  }
  Session session = std::move(*opened);
  if (!recover(session)) return;
  faults_on_ = true;
  if (plan_->room_bytes && !std::exchange(shared_->disk_is_small, true))
    shared_->disk->set_capacity(shared_->disk->total_bytes() + *plan_->room_bytes);
  for (std::size_t i = 0; i < plan_->acts.size(); ++i)
    if (!act(session, i)) return;
  finish(session);
}

void RankRun::look_around(Session& session) {
  const auto versions = session.versions();
  const Stats stats = session.stats();
  if (process_->killed) return;
  oracle().check_ledgers(rank_, stats, versions);
  for (const VersionInfo& info : versions)
    if (info.level.ends_with("+global")) oracle().drained(rank_, info.version);
  // What damage did is not known before a restore has looked at it.
  if (oracle().any_damage()) return;
  for (const VersionInfo& info : versions) {
    oracle().listed(rank_, info.version);
    seen_.insert(info.version);
  }
}

bool RankRun::start(Session& session) {
  application_.initialise();
  return application_.protect(session, application_.all_names()).has_value();
}

Result<Version> RankRun::restore(Session& session, std::optional<Version> asked,
                                 bool allow_missing) {
  const std::size_t index = next_event_++;
  RestoreEvent& event = shared_->event(index, asked);
  RestoreEvent::Part& part = event.ranks[rank_];
  event.at_start = next_call_ == 0;
  event.heals = shared_->history->replicas && !allow_missing;
  if (event.heals) oracle().begin_healing(index, rank_);
  application_.scramble();
  part.before = application_.state();
  part.fell_back = oracle().any_damage() || (faults_on_ && !plan_->faults.empty());
  event.disturbed = event.disturbed || shared_->node_may_be_lost();
  const std::uint64_t failed = session.stats().failed;
  auto restored = session.restore(RestoreOptions{.version = asked, .allow_missing = allow_missing});
  application_.restored();
  event.disturbed =
      event.disturbed || shared_->any_killed() || (faults_on_ && !plan_->faults.empty());
  if (process_->killed) return restored;
  // It may have fallen back to a version that has other regions.
  if (!restored && !allow_missing && shared_->node_was_lost) event.disturbed = true;
  // Ranks whose files vanished while they opened may list different versions, and ask for these.
  if (!restored && shared_->node_was_lost && restored.error().code() == Code::invalid_argument)
    event.disturbed = true;
  part.returned = true;
  part.fell_back = part.fell_back || oracle().any_damage();
  part.after = application_.state();
  if (restored)
    part.version = *restored;
  else
    part.error = restored.error();
  world_->trace("rank {}: restore({}) gives {}", rank_, asked.value_or(0),
                restored ? std::to_string(*restored) : restored.error().message());
  if (event.heals) look_for_healing(session, index, restored, failed);
  return restored;
}

void RankRun::look_for_healing(Session& session, std::size_t event, const Result<Version>& restored,
                               std::uint64_t failed) {
  const auto versions = session.versions();
  if (!restored || versions.empty()) return;
  std::optional<Version> healed;
  if (versions.front().version != *restored) healed = versions.front().version;
  if (healed && rank_ == 0) ++shared_->healings;
  world_->trace("rank {}: healed by version {}", rank_, healed.value_or(0));
  oracle().end_healing(event, rank_, healed, application_.state(), session.stats().failed > failed);
}

bool RankRun::knows_regions(const std::vector<VersionInfo>& versions) const {
  if (!plan_->exact_regions || plan_->early_faults || versions.empty()) return false;
  if (!shared_->history->replicas) return !oracle().any_damage();
  const auto newest = shared_->walk.newest_provable();
  if (!newest || newest->version != versions.front().version) return false;
  // A loss in this run may leave only an older one.
  const auto names = names_of(versions.front());
  return !(plan_->loss && plan_->loss->point) ||
         std::all_of(versions.begin(), versions.end(),
                     [&](const VersionInfo& version) { return names_of(version) == names; });
}

bool RankRun::ask_for(Session& session, Version version) {
  return !over(restore(session, version, true));
}

bool RankRun::recover(Session& session) {
  const auto latest = session.latest();
  world_->trace("rank {}: latest() is {}", rank_, latest.value_or(0));
  if (!plan_->early_faults && !process_->killed)
    oracle().check_latest(rank_, latest, shared_->census.traces());
  look_around(session);
  if (!latest) return start(session);
  if (!application_.protect(session, application_.all_names())) return false;
  if (plan_->ask_for_newer) {
    const auto& versions = shared_->census.versions;
    for (auto version = versions.rbegin(); version != versions.rend(); ++version)
      if (!ask_for(session, *version)) return false;
  }
  return restore_newest(session);
}

bool RankRun::restore_newest(Session& session) {
  const auto versions = session.versions();
  const bool exact = knows_regions(versions);
  if (exact && !application_.protect(session, names_of(versions.front()))) return false;
  const auto restored = restore(session, {}, !exact);
  if (over(restored)) return false;
  if (!restored) {
    if (plan_->start_over) return start(session);
    closed_ = session.close().has_value();
    return false;
  }
  shared_->restored = true;
  return keep_regions_of(session, *restored);
}

bool RankRun::keep_regions_of(Session& session, Version version) {
  const Attempt* attempt = oracle().find(version);
  if (!attempt) return true;
  std::set<std::string> names;
  for (const auto& [name, bytes] : attempt->ranks[rank_].state) names.insert(name);
  return application_.protect(session, names).has_value();
}

bool RankRun::go_back(Session& session, std::size_t choice) {
  // All ranks list the same versions here, since they settled the same ones.
  const auto versions = session.versions();
  if (versions.empty()) return !process_->killed;
  const Version version = versions[choice % versions.size()].version;
  if (!application_.protect(session, application_.all_names())) return false;
  const auto restored = restore(session, version, true);
  if (over(restored)) return false;
  if (!oracle().any_damage()) expect_success("restore()", restored);
  if (!restored) in_flight_.reset();  // it may be the version that could not be read
  return restored ? keep_regions_of(session, version) : start(session);
}

bool RankRun::act(Session& session, std::size_t call) {
  if (!application_.advance(session)) return !process_->killed;
  world_->trace("rank {}: act {} kind {}", rank_, call, static_cast<int>(plan_->acts[call]));
  next_call_ = call + 1;
  switch (plan_->acts[call]) {
    case Act::checkpoint:
      return capture(session, call, false);
    case Act::pieces:
      return capture(session, call, true);
    case Act::if_due:
      return !session.due() || capture(session, call, false);
    case Act::wait:
      return wait(session);
    case Act::go_back:
      return go_back(session, call);
    case Act::nothing:
      break;
  }
  return !process_->killed;
}

Result<Version> RankRun::capture_pieces(Session& session, Attempt& attempt) {
  State& state = attempt.ranks[rank_].state;
  state.clear();
  const auto begun = session.begin();
  if (begun) {
    for (const std::string& name : application_.protected_names()) {
      if (choices_.one_in(2)) continue;
      if (choices_.one_in(3)) application_.write(name);
      auto bytes = application_.bytes_of(name);
      if (!session.add(name)) continue;
      state[name] = std::move(bytes);
      if (choices_.one_in(2)) application_.write(name);
    }
  }
  for (const std::string& name : application_.protected_names())
    if (state.count(name) == 0) state[name] = application_.bytes_of(name);
  return session.commit();
}

bool RankRun::capture(Session& session, std::size_t call, bool in_pieces) {
  Attempt& attempt = oracle().begin_capture(call, rank_);
  attempt.ranks[rank_].state = application_.state();
  const auto version = in_pieces ? capture_pieces(session, attempt) : session.checkpoint();
  if (process_->killed) return false;
  world_->trace("rank {}: checkpoint {} is {}", rank_, call,
                version ? std::to_string(*version) : version.error().message());
  oracle().end_capture(attempt, rank_, version, shared_->history->late == "skip");
  expect_success("checkpoint()", version);
  if (version && attempt.ranks[rank_].outcome == Capture::Outcome::captured) in_flight_ = *version;
  if (!version) in_flight_.reset();
  look_around(session);
  return !over(version);
}

bool RankRun::wait(Session& session) {
  const auto existing = session.wait();
  if (process_->killed) return false;
  world_->trace("rank {}: wait() gives {}", rank_,
                existing ? std::to_string(*existing) : existing.error().message());
  expect_success("wait()", existing);
  if (existing) {
    oracle().told(rank_, *existing, "wait()");
    if (in_flight_ && *existing != *in_flight_)
      oracle().violation(
          "restart {}: rank {}: wait() gives {} without an error, but {} was captured",
          shared_->number, rank_, *existing, *in_flight_);
  } else {
    in_flight_.reset();
  }
  look_around(session);
  return !over(existing);
}

bool RankRun::probe(Session& session) {
  const bool calm = !shared_->node_may_be_lost();
  faults_on_ = false;
  faults_.clear();
  shared_->disk->set_capacity(1ull << 40);
  if (!wait(session)) return false;
  if (!capture(session, next_call_, false)) return false;
  if (!wait(session)) return false;
  if (calm && !shared_->any_killed() && !in_flight_)
    oracle().violation("restart {}: rank {}: the session stays unusable after faults have gone",
                       shared_->number, rank_);
  return true;
}

void RankRun::finish(Session& session) {
  if (plan_->probe_usable && !probe(session)) return;
  if (plan_->end == End::abandon) return;
  if (plan_->end == End::power_cut && choices_.one_in(2)) return world_->kill_all();
  const auto closed = session.close();
  if (process_->killed) return;
  world_->trace("rank {}: close() gives {}", rank_, closed ? "ok" : closed.error().message());
  expect_success("close()", closed);
  closed_ = closed.has_value();
  if (!closed_ || !in_flight_) return;
  oracle().told(rank_, *in_flight_, "close()");
  seen_.insert(*in_flight_);
}

}  // namespace belay::simulator
