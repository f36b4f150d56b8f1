// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "session/core.hpp"
#include "vote/agreement.hpp"
#include "vote/publish.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace belay::detail {
namespace {

constexpr const char* kCallNames[] = {"?",      "due()",     "checkpoint()", "begin()", "commit()",
                                      "wait()", "restore()", "dump()",       "load()",  "close()"};

}  // namespace

Result<void> SessionCore::check_same_call(std::span<const std::uint64_t> lowest, Call mine) {
  // The minimum over x and over ~x gives the lowest and the highest call that any rank makes.
  const std::uint64_t low = lowest[0];
  const std::uint64_t high = ~lowest[1];
  const auto name = [](std::uint64_t call) {
    return kCallNames[call < std::size(kCallNames) ? call : 0];
  };
  if (low != high)
    return fail(Code::invalid_argument,
                "ranks make different collective calls: some {}, some {} (this one {}); all ranks "
                "must make the same calls in the same order{}",
                name(low), name(high), name(static_cast<std::uint64_t>(mine)),
                high == static_cast<std::uint64_t>(Call::close) ? "; the session is closed" : "");
  if (lowest[2] != ~lowest[3])
    return fail(Code::invalid_argument,
                "ranks disagree on the next version ({} and {}); all ranks must take part in every "
                "checkpoint",
                lowest[2], ~lowest[3]);
  if (lowest[4] != ~lowest[5] && mine == Call::dump)
    return fail(Code::invalid_argument,
                "ranks ask dump() for different numbers of copies ({} and {}); all must ask for "
                "the same",
                lowest[4], ~lowest[5]);
  if (lowest[4] != ~lowest[5])
    return fail(
        Code::invalid_argument,
        "ranks ask to restore different versions ({} and {}; 0 is the newest); all must ask "
        "for the same",
        lowest[4], ~lowest[5]);
  return {};
}

Result<SessionCore::Meeting> SessionCore::meet(Call call, Meeting mine) {
  const auto number = static_cast<std::uint64_t>(call);
  if (lost_) return Unexpected(*lost_);
  std::array<std::uint64_t, 10> lowest{number,
                                       ~number,
                                       holdings_.next_number(),
                                       ~holdings_.next_number(),
                                       mine.asked,
                                       ~mine.asked,
                                       mine.idle ? 1u : 0u,
                                       mine.agrees ? 1u : 0u,
                                       mine.holds ? 1u : 0u,
                                       mine.drained ? 1u : 0u};
  BELAY_TRY(parts_.group->reduce(lowest, ranks::Reduction::min));
  if (auto same = check_same_call(lowest, call); !same) {
    if (~lowest[1] == static_cast<std::uint64_t>(Call::close)) end_with_others();
    return Unexpected(same.error());
  }
  return Meeting{.asked = mine.asked,
                 .idle = lowest[6] == 1,
                 .agrees = lowest[7] == 1,
                 .holds = lowest[8] == 1,
                 .drained = lowest[9] == 1};
}

void SessionCore::end_with_others() {
  closed_ = true;
  parts_.worker->wait_all();
  cancel_drain();
  parts_.claim.locks.clear();
  // All ranks are here, whatever they called: nobody waits for one that will not come.
  if (parts_.head) parts_.head->leave();
  auto ended = parts_.voyages ? parts_.voyages->close() : Result<void>{};
  if (ended && parts_.drains) ended = parts_.drains->close();
  if (ended) ended = parts_.group->close();
  if (!ended) log_.warn("close: {}", ended.error().message());
}

bool SessionCore::due() {
  if (closed_) return false;
  const bool mine = schedule_.due();
  if (schedule_.same_everywhere() || parts_.group->size() == 1) return mine;
  // The same reduction as for the other calls, so that ranks which call those instead are told.
  const auto met = meet(Call::due, {.agrees = rank_ != 0 || mine});
  if (met) return met->agrees;
  // A lost peer is reported by checkpoint(), so let the program call it.
  if (met.error().code() == Code::peer_lost) return true;
  (void)remembered(Result<void>(Unexpected(met.error())));
  return false;
}

Result<bool> SessionCore::settle(Call call, Version asked) {
  const bool may_skip = flight_ && call == Call::checkpoint && settings_.late == Late::skip;
  // Only the flight is waited for: old files may go on going.
  while (!may_skip && flight_ && !flight_->finished()) parts_.worker->wait_one();
  const bool idle = !flight_ || flight_->finished();
  finish_housekeeping();
  note_lost_peer();
  const bool voted = idle && !missed_ && (!flight_ || flight_->voted());
  BELAY_ASSIGN(const Meeting all, meet(call, {.asked = asked,
                                              .idle = idle,
                                              .agrees = voted,
                                              .drained = !drain_ || drain_->finished()}));
  if (!all.idle) return false;
  if (drain_ && all.drained) BELAY_TRY(finish_drain());
  const bool ends = call == Call::wait || call == Call::close;
  if (flight_ || missed_) BELAY_TRY(decide_flight(all.agrees, ends));
  if (ends) BELAY_TRY(end_drain());
  return true;
}

Result<void> SessionCore::decide_flight(bool exists, bool ends) {
  // A version of which some node's copy has no name would not survive what it promises.
  const auto named = exists && together() ? name_kept_manifests() : Result<void>{};
  if (!named && named.error().code() == Code::peer_lost) return named;
  exists = exists && named;
  if (exists)
    adopt_flight();
  else
    BELAY_TRY(drop_flight(named));
  if (holdings_.must_settle()) BELAY_TRY(settle_store());
  if (!exists || !parts_.claim.global || !catalog_.manifest().global) return {};
  return start_drain(!ends && settings_.late == Late::skip);
}

/// Ranks that lost a peer in the background do not wait for it once more.
void SessionCore::note_lost_peer() {
  if (lost_ || !flight_ || !flight_->finished() || !flight_->error()) return;
  if (flight_->error()->code() != Code::peer_lost) return;
  lost_ =
      flight_->error()->within(fmt::format("version {}", flight_->manifest->origin.key.version));
  log_.write(LogLevel::error, "checkpoint failed: {}", lost_->message());
}

/// Once in a store's life: before anybody is told that a version exists, the mark says so.
Result<void> SessionCore::settle_store() {
  Result<void> mine;
  if (parts_.claim.leads_node) mine = vote::mark_settled(equipment_.tier, parts_.claim.record);
  const auto& global = parts_.claim.global;
  if (mine && global && global->leads_node)
    mine = vote::mark_settled(*global->tier, parts_.claim.record);
  auto marked = vote::agree(*parts_.group, mine);
  if (marked) holdings_.settled();
  if (!marked && marked.error().code() == Code::peer_lost) return marked;
  if (!marked) log_.warn("settle: {}", marked.error().message());
  return {};
}

void SessionCore::adopt_flight() {
  session::Flight& flight = *flight_;
  std::vector<std::uint64_t> live_bytes = flight.live_bytes();
  const Ledger& ledger = flight.manifest->ledger;
  stats_.last.duplicate_elsewhere_bytes = ledger.duplicate_elsewhere_bytes;
  stats_.last.written_bytes = ledger.written_bytes;
  stats_.last.encoded_bytes = ledger.encoded_bytes;
  stats_.last.file_bytes = ledger.file_bytes;
  stats_.last.durable_ns = ledger.durable_ns;
  add_last_to_total();
  if (together()) note_whereabouts();
  if (!planted(Mistake::delete_early))
    holdings_.exists(*flight.manifest, std::move(flight.info()), flight.kept());
  catalog_.adopt(flight.manifest, std::move(live_bytes));
  dedup_ = std::move(flight.index());
  index_is_current_ = flight.indexed();
  stats_.table_bytes = catalog_.memory_bytes() + dedup_.memory_bytes();
  dirty_sets_.version_exists();
  ++stats_.existing;
  log_.info("version {} exists", flight.manifest->origin.key.version);
  flight_.reset();
}

Result<void> SessionCore::drop_flight(const Result<void>& named) {
  const VersionKey key{parts_.claim.run, holdings_.next_number() - 1};
  Result<void> mine;
  if (missed_) mine = Unexpected(out_of_memory());
  if (flight_ && flight_->error()) mine = Unexpected(*flight_->error());
  if (std::exchange(missed_, false)) stats_.last = {.version = key.version};
  const auto agreed = named ? vote::agree(*parts_.group, mine) : named;
  if (!agreed && agreed.error().code() == Code::peer_lost) return agreed;
  const Error error = agreed ? Error(Code::io, "not every rank voted") : agreed.error();
  const Error told = error.within(fmt::format("version {}", key.version));
  add_last_to_total();
  ++stats_.failed;
  stats_.last_failure = told.message();
  log_.write(LogLevel::error, "checkpoint failed: {}", told.message());
  if (!unreported_) unreported_ = told;
  if (planted(Mistake::keep_failed) && flight_) {
    catalog_.adopt(flight_->manifest,
                   std::vector<std::uint64_t>(flight_->manifest->segments.size()));
    dirty_sets_.version_exists();
  } else {
    dirty_sets_.version_failed();
    reload_catalog();
  }
  index_is_current_ = false;
  std::vector<SegmentId> counted_on;
  if (flight_)
    for (const SegmentRef& segment : flight_->manifest->segments) counted_on.push_back(segment.id);
  holdings_.discard(key, flight_ ? flight_->kept() : vote::Kept{}, std::move(counted_on));
  if (planted(Mistake::reuse_version)) holdings_.reuse_number(key.version);
  flight_.reset();
  return {};
}

/// The version that failed has overwritten the block table of the last existing one.
void SessionCore::reload_catalog() {
  if (catalog_.whole()) return;
  auto manifest = within_memory([&] { return load(catalog_.key()); });
  if (manifest) return catalog_.give_back(std::move(static_cast<BlockTable&>(*manifest)), true);
  log_.warn("version {} cannot be read back, so the next one writes everything: {}",
            catalog_.key().version, manifest.error().message());
  catalog_.forget();
}

Result<void> SessionCore::keep_house() {
  finish_housekeeping();
  const bool apart = hides_first() && !planted(Mistake::remove_early);
  if (!apart) retire_versions();
  vote::Needs needs = holdings_.needs();
  if (together() || parts_.claim.shares_files) {
    BELAY_ASSIGN(needs, exchange_needs());
  }
  auto round = begin_housekeeping(needs);
  // What these count on stays until an exchange to come has shown that all ranks have hidden them.
  if (apart) retire_versions();
  submit_housekeeping(std::move(round));
  return keep_global_house();
}

void SessionCore::retire_versions() {
  const VersionKey pinned = drain_ ? drain_->origin().key : VersionKey{};
  for (const VersionKey& key : holdings_.retire_versions(catalog_.key(), pinned))
    parts_.claim.sources.forget(key, /*global=*/false);
}

std::shared_ptr<SessionCore::Housekeeping> SessionCore::begin_housekeeping(
    const vote::Needs& needs) {
  finish_housekeeping();
  if (housekeeping_) return nullptr;
  auto round = std::make_shared<Housekeeping>();
  holdings_.release(needs);
  return round;
}

void SessionCore::submit_housekeeping(std::shared_ptr<Housekeeping> round) {
  if (!round) return;                      // what is retired by now goes with the next
  round->left = holdings_.take_retired();  // until they are gone
  if (round->left.empty()) return holdings_.give_back({});
  housekeeping_ = round;
  auto submitted = within_memory([&]() -> Result<void> {
    parts_.worker->submit([this, round] {
      const auto removed = within_memory([&]() -> Result<void> {
        BELAY_TRY(vote::check_still_ours(equipment_.tier, parts_.claim.run));
        round->left = vote::remove_retired(equipment_.tier, round->left, log_, !parts_.head);
        return {};
      });
      if (!removed) log_.warn("retire: {}", removed.error().message());
      round->done.store(true, std::memory_order_release);
    });
    return {};
  });
  // Nobody works on a round that could not be submitted: the next one takes its files.
  if (!submitted) round->done.store(true, std::memory_order_release);
}

/// What was hidden last counts on files that go only now.
Result<void> SessionCore::keep_house_again() {
  if (parts_.drain_worker)
    BELAY_TRY(await_drain_workers([&] { return !parts_.drain_worker->pending(); }));
  global_rounds_ = std::max(global_rounds_, 1u);
  if (hides_first()) {
    BELAY_TRY(keep_house());
  } else {
    BELAY_TRY(keep_global_house());
  }
  parts_.worker->wait_all();
  return {};
}

void SessionCore::finish_housekeeping() {
  if (!housekeeping_ || !housekeeping_->done.load(std::memory_order_acquire)) return;
  holdings_.give_back(housekeeping_->left);
  housekeeping_.reset();
}

void SessionCore::mark_closed() {
  if (!parts_.claim.leads_node || stats_.captured == 0) return;
  // Without the mark the next run's numbers start a little higher: nothing else depends on it.
  auto marked =
      vote::mark_closed(equipment_.tier, parts_.claim.record, holdings_.next_number() - 1);
  if (!marked) log_.warn("close: {}", marked.error().message());
}

Result<Version> SessionCore::wait() {
  BELAY_TRY(check_usable(false));
  BELAY_TRY(settle(Call::wait));
  BELAY_TRY(keep_house());  // goes on in the background: nobody waits for old files to go
  if (unreported_) {
    const Error error = *std::exchange(unreported_, {});
    return Unexpected(error);
  }
  const auto newest = holdings_.newest();
  return newest ? newest->version : Version{0};
}

Result<void> SessionCore::close() {
  if (closed_ && unreported_) return Unexpected(*std::exchange(unreported_, {}));
  if (closed_) return {};
  if (capture_)
    give_up_version(Error(Code::invalid_argument, "begun, but close() came before commit()"),
                    clock_.now_ns());
  Result<void> settled;
  if (auto met = settle(Call::close); !met) settled = Unexpected(met.error());
  closed_ = true;
  if (settled) {
    parts_.worker->wait_all();  // a round may be under way; the last one comes after it
    settled = keep_house();
    parts_.worker->wait_all();
    if (settled) settled = keep_house_again();
    vote::drop_retired(equipment_.tier, log_);
    finish_housekeeping();
    if (parts_.drain_worker) parts_.drain_worker->wait_all();
    mark_closed();
    if (settled) settled = windows_.close();
    if (settled && parts_.voyages) settled = parts_.voyages->close();
    if (settled && parts_.drains) settled = parts_.drains->close();
  }
  if (parts_.head) parts_.head->leave();
  parts_.claim.locks.clear();
  auto ended = settled ? parts_.group->close() : Result<void>{};
  if (unreported_) return Unexpected(*std::exchange(unreported_, {}));
  if (!settled) return Unexpected(settled.error());
  return ended;
}

}  // namespace belay::detail
