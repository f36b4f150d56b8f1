// SPDX-License-Identifier: Apache-2.0
#include "simulator/oracle.hpp"

#include <algorithm>

namespace belay::simulator {

namespace {

/// What is wrong with `restored` as the content of `captured`; empty: nothing. `damaged`: a rank
/// that fell back from it has protected the regions of an older version; with these, what is left
/// of it may be restored after all.
std::string difference(const State& captured, const RestoreEvent::Part& part,
                       bool damaged = false) {
  for (const auto& [name, bytes] : captured) {
    const auto found = part.after.find(name);
    if (found == part.after.end() && damaged && !part.before.contains(name)) continue;
    if (found == part.after.end()) return fmt::format("region '{}' is missing in", name);
    const auto& restored = found->second;
    if (restored.size() != bytes.size())
      return fmt::format("region '{}' has {} bytes instead of {} as in", name, restored.size(),
                         bytes.size());
    const auto [at, other] = std::mismatch(bytes.begin(), bytes.end(), restored.begin());
    if (at != bytes.end())
      return fmt::format("region '{}' differs at byte {} from", name, at - bytes.begin());
  }
  for (const auto& [name, bytes] : part.after) {
    if (captured.count(name) > 0 || part.fell_back) continue;
    const auto before = part.before.find(name);
    if (before != part.before.end() && before->second != bytes)
      return fmt::format("region '{}' was written though it is not in", name);
  }
  return {};
}

}  // namespace

bool Attempt::may_exist() const {
  return std::none_of(ranks.begin(), ranks.end(), [](const Capture& capture) {
    return capture.outcome == Capture::Outcome::absent ||
           capture.outcome == Capture::Outcome::skipped;
  });
}

std::optional<Version> RestoreEvent::result() const {
  for (const Part& part : ranks)
    if (part.returned && part.version) return part.version;
  return {};
}

void Oracle::speak_of(std::size_t run) {
  run_ = run;
  newest_run_ = std::max(newest_run_, run);
}

Attempt& Oracle::begin_capture(std::size_t call, Rank rank) {
  auto found = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
    return attempt.run == run_ && attempt.call == call;
  });
  if (found == attempts_.end()) {
    const auto later = std::find_if(attempts_.begin(), attempts_.end(),
                                    [&](const Attempt& other) { return other.run > run_; });
    found = attempts_.emplace(later);
    found->run = run_;
    found->call = call;
    found->ranks.resize(ranks_);
    if (const auto copies = copies_.find(run_); copies != copies_.end()) {
      found->copies = copies->second;
      found->wounds = lasting_wounds_;
      found->damaged = is_beyond_promise(*found);
    }
  }
  found->ranks[rank].outcome = Capture::Outcome::unknown;
  return *found;
}

void Oracle::end_capture(Attempt& attempt, Rank rank, const Result<Version>& result,
                         bool may_skip) {
  Capture& capture = attempt.ranks[rank];
  if (!result) {
    capture.outcome = Capture::Outcome::failed;
    return;
  }
  const Attempt* known = find_attempt(*result);
  if (known && known != &attempt) {
    if (may_skip && known->run == run_ && !attempt.version) {
      capture.outcome = Capture::Outcome::skipped;
      return;
    }
    // What remembers a number that left no other trace may itself have been damaged.
    if (known->run == run_ || known->promised || !any_damage_)
      violation("restart {}: rank {}: version {} of restart {} is used again", run_, rank, *result,
                known->run);
  }
  if (attempt.version && *attempt.version != *result)
    violation("restart {}: rank {}: version {} is {} on another rank", run_, rank, *result,
              *attempt.version);
  for (const Capture& other : attempt.ranks)
    if (other.outcome == Capture::Outcome::skipped)
      violation("restart {}: rank {}: version {} was skipped by another rank", run_, rank, *result);
  attempt.version = *result;
  capture.outcome = Capture::Outcome::captured;
}

void Oracle::begin_healing(std::size_t event, Rank rank) { begin_capture(kHealings + event, rank); }

void Oracle::end_healing(std::size_t event, Rank rank, std::optional<Version> version, State state,
                         bool failed) {
  Attempt& attempt = begin_capture(kHealings + event, rank);
  attempt.ranks[rank].state = std::move(state);
  if (!version) {
    attempt.ranks[rank].outcome = failed ? Capture::Outcome::failed : Capture::Outcome::skipped;
    return;
  }
  end_capture(attempt, rank, *version, false);
  promise(rank, attempt, "restore()");
}

Attempt* Oracle::find_healing(std::size_t run, std::size_t event) {
  const auto found = std::find_if(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
    return attempt.run == run && attempt.call == kHealings + event;
  });
  return found == attempts_.end() ? nullptr : &*found;
}

/// Ranks that did not return from restore() may have voted for what they had restored.
void Oracle::settle_healing(const RestoreEvent& event, std::size_t index, const Attempt* restored) {
  Attempt* healing = event.heals ? find_healing(event.run, index) : nullptr;
  if (!healing || !healing->may_exist()) return;
  healing->any_state = restored == nullptr;
  if (!restored) return;
  for (Rank rank = 0; rank < ranks_; ++rank)
    if (healing->ranks[rank].outcome == Capture::Outcome::unknown)
      healing->ranks[rank].state = restored->ranks[rank].state;
}

/// It is a version of some state that could be restored when it was taken: which one shows now.
bool Oracle::take_any_state(Attempt& healing, const RestoreEvent& event) {
  for (auto source = attempts_.rbegin(); source != attempts_.rend(); ++source) {
    if (source->run >= healing.run || source->any_state || !source->may_exist()) continue;
    bool same = true;
    for (Rank rank = 0; rank < ranks_ && same; ++rank)
      same = !event.ranks[rank].version ||
             difference(source->ranks[rank].state, event.ranks[rank]).empty();
    if (!same) continue;
    for (Rank rank = 0; rank < ranks_; ++rank)
      healing.ranks[rank].state = source->ranks[rank].state;
    healing.any_state = false;
    return true;
  }
  return false;
}

void Oracle::told(Rank rank, Version version, const char* where) {
  // A version of a killed run may have a number that no rank lived to learn.
  Attempt* attempt = find_attempt(version);
  if (!attempt) return;
  attempt->told = true;
  promise(rank, *attempt, where);
}

void Oracle::listed(Rank rank, Version version) {
  Attempt* attempt = find_attempt(version);
  if (!attempt) return;
  // Manifests are kept for others before these vote: of a version that died in its own run only the
  // walk over the store can say whether it is whole.
  if (attempt->run < run_ && copies_.count(attempt->run) > 0 && !attempt->promised) return;
  promise(rank, *attempt, "versions()");
}

void Oracle::drained(Rank rank, Version version) {
  Attempt* attempt = find_attempt(version);
  // What an earlier run has left there may have been damaged since.
  if (!attempt || attempt->run != run_) return;
  promise(rank, *attempt, "versions()");
  attempt->global = true;
  attempt->damaged = attempt->damaged || global_damaged_;
}

void Oracle::damage_global() {
  any_damage_ = global_damaged_ = true;
  for (Attempt& attempt : attempts_) attempt.damaged = attempt.damaged || attempt.global;
}

bool Oracle::is_promised(const Attempt& attempt) const {
  return attempt.promised && attempt.promised_to <= run_;
}

void Oracle::promise(Rank rank, Attempt& attempt, const char* where) {
  // A version that its own run did not live to hear of is whole, but perhaps not on all nodes.
  if (!attempt.promised && attempt.run < run_) {
    attempt.copies = 1;
    attempt.damaged = attempt.damaged || !attempt.wounds.empty();
  }
  const bool straggler = run_ < newest_run_;
  attempt.promised_to = std::min(attempt.promised_to, straggler ? newest_run_ + 1 : run_);
  attempt.promised = true;
  for (Rank other = 0; other < ranks_; ++other) {
    const auto outcome = attempt.ranks[other].outcome;
    const bool failed = outcome == Capture::Outcome::failed && attempt.run == run_;
    if (failed || outcome == Capture::Outcome::absent)
      violation(
          "restart {}: rank {}: {} says that version {} exists, but rank {} did not capture it",
          run_, rank, where, attempt.version.value_or(0), other);
  }
}

void Oracle::damage(const std::set<Version>& versions, bool settled_mark) {
  any_damage_ = true;
  settled_mark_damaged_ = settled_mark_damaged_ || settled_mark;
  for (Attempt& attempt : attempts_)
    if (attempt.version && versions.count(*attempt.version) > 0) attempt.damaged = true;
}

void Oracle::wound(const std::string& node, bool lasting) {
  any_damage_ = true;
  if (lasting) lasting_wounds_.insert(node);
  for (Attempt& attempt : attempts_) {
    attempt.wounds.insert(node);
    if (attempt.global) continue;
    attempt.damaged = attempt.damaged || is_beyond_promise(attempt);
  }
}

bool Oracle::is_beyond_promise(const Attempt& attempt) const {
  const auto sets = sets_.find(attempt.run);
  if (sets == sets_.end() || sets->second.size() == 1)
    return attempt.wounds.size() >= attempt.copies;
  return std::any_of(sets->second.begin(), sets->second.end(), [&](const auto& set) {
    const auto lost = std::count_if(set.begin(), set.end(), [&](const std::string& node) {
      return attempt.wounds.contains(node);
    });
    return static_cast<std::uint32_t>(lost) >= attempt.copies;
  });
}

void Oracle::damage_begun() {
  for (Attempt& attempt : attempts_)
    if (attempt.run == run_) attempt.damaged = true;
}

void Oracle::forget_above(Version highest, std::size_t run) {
  for (Attempt& attempt : attempts_)
    if (attempt.run < run && attempt.version.value_or(0) > highest) attempt.forgotten = true;
}

std::uint64_t Oracle::newer_than(const Attempt& attempt) const {
  std::uint64_t newer = 0;
  for (auto above = attempts_.rbegin(); &*above != &attempt; ++above)
    if (above->run < run_ && above->may_exist() && may_push_out(*above, attempt)) ++newer;
  return newer;
}

bool Oracle::may_push_out(const Attempt& newer, const Attempt& attempt) const {
  if (!attempt.global || !newer.version) return true;
  const auto every = global_every_.find(newer.run);
  return every != global_every_.end() && *newer.version % every->second == 0;
}

const Attempt* Oracle::required() const {
  bool damage_above = false;
  for (auto attempt = attempts_.rbegin(); attempt != attempts_.rend(); ++attempt) {
    if (attempt->run >= run_) continue;
    damage_above = damage_above || attempt->damaged;
    if (!is_promised(*attempt) || attempt->damaged) continue;
    // With damage among the newer ones, it may have been retired before it was needed.
    return damage_above && newer_than(*attempt) >= keep_ ? nullptr : &*attempt;
  }
  return nullptr;
}

Attempt* Oracle::find_attempt(Version version) {
  for (auto attempt = attempts_.rbegin(); attempt != attempts_.rend(); ++attempt)
    if (attempt->version == version && !attempt->forgotten) return &*attempt;
  return nullptr;
}

Attempt* Oracle::find_forgotten(Version version) {
  for (auto attempt = attempts_.rbegin(); attempt != attempts_.rend(); ++attempt)
    if (attempt->version == version && attempt->forgotten) return &*attempt;
  return nullptr;
}

const Attempt* Oracle::find(Version version) const {
  return const_cast<Oracle*>(this)->find_attempt(version);
}

bool Oracle::may_do_with_less(const RestoreEvent& event, Version version) const {
  const Attempt* attempt = find(version);
  if (!attempt || !attempt->damaged) return false;
  for (Rank rank = 0; rank < ranks_; ++rank)
    for (const auto& [name, bytes] : attempt->ranks[rank].state)
      if (!event.ranks[rank].before.contains(name)) return true;
  return false;
}

void Oracle::check_latest(Rank rank, std::optional<Version> latest, bool traces_left) {
  if (!latest) {
    const bool existed =
        std::any_of(attempts_.begin(), attempts_.end(), [&](const Attempt& attempt) {
          if (attempt.run >= run_) return false;
          return any_damage_ ? traces_left && attempt.told && !settled_mark_damaged_
                             : is_promised(attempt);
        });
    if (existed)
      violation("restart {}: rank {}: latest() is empty, but versions existed", run_, rank);
    return;
  }
  const Attempt* must = required();
  if (must && *latest < *must->version)
    violation("restart {}: rank {}: latest() is {}, but version {} exists", run_, rank, *latest,
              *must->version);
}

void Oracle::check_agreement(const RestoreEvent& event) {
  const RestoreEvent::Part& first = event.ranks[0];
  for (Rank rank = 1; rank < ranks_; ++rank) {
    const RestoreEvent::Part& part = event.ranks[rank];
    if (part.version != first.version)
      violation("restart {}: restore() gives {} on rank 0 and {} on rank {}", event.run,
                first.version.value_or(0), part.version.value_or(0), rank);
    else if (part.error && (part.error->code() != first.error->code() ||
                            part.error->message() != first.error->message()))
      violation("restart {}: restore() fails differently on rank 0 ({}) and rank {} ({})",
                event.run, first.error->message(), rank, part.error->message());
  }
}

Attempt* Oracle::recognise(const RestoreEvent& event, Version version) {
  // Newest first: several attempts may have captured the same state.
  for (auto it = attempts_.rbegin(); it != attempts_.rend(); ++it) {
    Attempt& attempt = *it;
    if (attempt.version || attempt.run >= event.run || !attempt.may_exist()) continue;
    bool same = !attempt.any_state || take_any_state(attempt, event);
    for (Rank rank = 0; rank < ranks_ && same; ++rank)
      same = !event.ranks[rank].version ||
             difference(attempt.ranks[rank].state, event.ranks[rank]).empty();
    if (!same) continue;
    attempt.version = version;
    return &attempt;
  }
  return nullptr;
}

void Oracle::check_content(const RestoreEvent& event, Attempt& attempt) {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const Capture& capture = attempt.ranks[rank];
    // A rank that was told of a failure may have voted all the same: the last sync failed.
    if (capture.outcome == Capture::Outcome::absent)
      violation("restart {}: version {} is restored, but rank {} did not capture it", event.run,
                *attempt.version, rank);
    const RestoreEvent::Part& part = event.ranks[rank];
    if (!part.version) continue;
    if (const auto wrong = difference(capture.state, part, attempt.damaged); !wrong.empty())
      violation("restart {}: rank {}: {} version {}", event.run, rank, wrong, *attempt.version);
  }
}

void Oracle::check_age(const RestoreEvent& event, const Attempt& attempt) {
  const Attempt* must = required();
  if (must &&
      (attempt.run < must->run || (attempt.run == must->run && *attempt.version < *must->version)))
    violation("restart {}: restore() gives version {}, but version {} exists", event.run,
              *attempt.version, *must->version);
}

void Oracle::check_refusal(const RestoreEvent& event) {
  const Attempt* must = required();
  if (!must) return;
  if (event.asked && (*event.asked != *must->version || newer_than(*must) >= keep_)) return;
  for (Rank rank = 0; rank < ranks_; ++rank)
    if (const auto& error = event.ranks[rank].error)
      return violation("restart {}: rank {}: restore() fails, but version {} exists: {}", event.run,
                       rank, *must->version, error->message());
}

void Oracle::check_restore(const RestoreEvent& event, std::size_t index) {
  if (!event.disturbed) check_agreement(event);
  const auto version = event.result();
  if (!version) {
    settle_healing(event, index, nullptr);
    if (!event.disturbed) check_refusal(event);
    return;
  }
  if (event.asked && *event.asked != *version)
    violation("restart {}: restore({}) gives version {}", event.run, *event.asked, *version);
  Attempt* attempt = find_attempt(*version);
  if (!attempt) attempt = recognise(event, *version);
  if (!attempt) attempt = find_forgotten(*version);  // it was restored before it was lost
  if (!attempt) {
    violation("restart {}: restore() gives version {}, which is the state of no checkpoint",
              event.run, *version);
    return;
  }
  settle_healing(event, index, attempt);
  check_content(event, *attempt);
  if (!event.asked && !event.disturbed) check_age(event, *attempt);
}

void Oracle::check_ledgers(Rank rank, const Stats& stats,
                           const std::vector<VersionInfo>& versions) {
  if (!stats.last.balances() || !stats.total.balances())
    violation("restart {}: rank {}: the ledger of version {} does not balance", run_, rank,
              stats.last.version);
  for (const VersionInfo& info : versions)
    if (!info.ledger.balances())
      violation("restart {}: rank {}: the stored ledger of version {} does not balance", run_, rank,
                info.version);
}

}  // namespace belay::simulator
