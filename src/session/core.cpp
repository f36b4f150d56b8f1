// SPDX-License-Identifier: Apache-2.0
#include "session/core.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "store/carry.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace belay::detail {
namespace {

void add_to_sum(Ledger& sum, const Ledger& ledger) {
  sum.version = ledger.version;
  sum.protected_bytes += ledger.protected_bytes;
  sum.untouched_bytes += ledger.untouched_bytes;
  sum.unchanged_bytes += ledger.unchanged_bytes;
  sum.duplicate_here_bytes += ledger.duplicate_here_bytes;
  sum.duplicate_elsewhere_bytes += ledger.duplicate_elsewhere_bytes;
  sum.written_bytes += ledger.written_bytes;
  sum.carried_bytes += ledger.carried_bytes;
  sum.encoded_bytes += ledger.encoded_bytes;
  sum.file_bytes += ledger.file_bytes;
  sum.settle_ns += ledger.settle_ns;
  sum.detect_ns += ledger.detect_ns;
  sum.stage_ns += ledger.stage_ns;
  sum.wait_ns += ledger.wait_ns;
  sum.blocking_ns += ledger.blocking_ns;
  sum.durable_ns += ledger.durable_ns;
}

void add_codecs(Stats& stats, std::vector<CodecUse> uses) {
  std::move(uses.begin(), uses.end(), std::back_inserter(stats.codecs));
}

/// Memory that a head sees too, if there is one.
capture::Staging::Allocate allocate_for(session::HeadLine* head) {
  if (head == nullptr) return {};
  return [head](std::size_t number, std::size_t bytes) { return head->allocate(number, bytes); };
}

}  // namespace

SessionCore::SessionCore(CoreParts parts)
    : parts_(std::move(parts)),
      settings_(parts_.settings),
      log_(*parts_.log),
      clock_(*parts_.clock),
      rank_(parts_.group->rank()),
      dirty_sets_(std::move(parts_.tracker)),
      staging_(settings_.staging_bytes.value_or(kLeastStagingBytes), settings_.block_bytes,
               allocate_for(parts_.head.get())),
      equipment_{settings_,        clock_,   log_,           *parts_.claim.tier,  *parts_.hasher,
                 *parts_.parallel, staging_, *parts_.worker, parts_.chooser.get()},
      schedule_(settings_.interval, settings_.mtbf_ns, clock_),
      holdings_(parts_.claim, settings_.keep, rank_,
                settings_.level_plan().levels().back().losses()) {
  if (parts_.bundles) parts_.claim.whereabouts.trust_copies();
  if (settings_.diskless()) parts_.claim.whereabouts.see_all();
  if (hides_first()) holdings_.hide_first();
  parts_.claim.own = {};
  parts_.claim.surveys = {};
  if (parts_.claim.global) parts_.claim.global->own = {};
}

SessionCore::~SessionCore() {
  if (capture_) capture_->abandon(Error(Code::invalid_argument, "the session was destroyed"));
  parts_.worker->wait_all();
  cancel_drain();
  if (flight_ && flight_->error())
    log_.write(LogLevel::error, "version {} failed: {}", flight_->manifest->origin.key.version,
               flight_->error()->message());
}

Result<void> SessionCore::check_usable(bool capturing) const {
  if (closed_) return fail(Code::invalid_argument, "the session is closed; open the store again");
  if (capture_.has_value() && !capturing)
    return fail(Code::invalid_argument,
                "a version was begun and not committed; call commit() first");
  if (!capture_.has_value() && capturing)
    return fail(Code::invalid_argument, "no version was begun; call begin() first");
  return {};
}

Result<void> SessionCore::protect(std::string_view name, std::unique_ptr<RegionAccess> access) {
  if (closed_) return check_usable(false);
  if (capture_ && is_captured(regions_.find(name)))
    return fail(Code::invalid_argument,
                "protect '{}': the region is part of the version being captured; commit() first",
                name);
  BELAY_TRY(regions_.protect(name, std::move(access)));
  dirty_sets_.distrust(name);
  return {};
}

Result<void> SessionCore::unprotect(std::string_view name) {
  if (closed_) return check_usable(false);
  if (capture_ && is_captured(regions_.find(name)))
    return fail(Code::invalid_argument,
                "unprotect '{}': the region is part of the version being captured; commit() first",
                name);
  BELAY_TRY(regions_.unprotect(name));
  dirty_sets_.distrust(name);
  return {};
}

std::vector<VersionInfo> SessionCore::versions() const {
  auto versions = holdings_.versions();
  if (settings_.diskless())
    for (VersionInfo& info : versions) info.level += "+global";
  return versions;
}

Stats SessionCore::stats() const {
  Stats stats = stats_;
  stats.staging_bytes = staging_.allocated_bytes();
  stats.hash_threads = parts_.parallel->threads();
  if (parts_.chooser)
    add_codecs(stats,
               session::codec_uses(settings_.diskless() ? "global" : "local", *parts_.chooser));
  if (parts_.global_chooser)
    add_codecs(stats, session::codec_uses("global", *parts_.global_chooser));
  add_codecs(stats, head_codecs_);
  return stats;
}

Result<Version> SessionCore::checkpoint() {
  BELAY_TRY(check_usable(false));
  const std::uint64_t entry = clock_.now_ns();
  BELAY_ASSIGN(const bool proceed, settle(Call::checkpoint));
  if (!proceed) {
    ++stats_.skipped;
    return flight_->manifest->origin.key.version;
  }
  auto started = start_version(entry);
  // The other ranks have started, and are told that this one has not.
  if (!started && together() && started.error().code() != Code::peer_lost)
    started = Unexpected(agree_captured(started).error());
  if (!started) return Unexpected(started.error());
  return capture_and_seal(entry);
}

Result<void> SessionCore::begin() {
  BELAY_TRY(check_usable(false));
  const std::uint64_t entry = clock_.now_ns();
  BELAY_TRY(settle(Call::begin));
  auto started = start_version(entry);
  if (together() && (started || started.error().code() != Code::peer_lost))
    started = vote::agree(*parts_.group, started);
  if (!started) {
    if (capture_) give_up_version(started.error(), entry);
    return started;
  }
  blocking_ns_ = clock_.now_ns() - entry;
  return {};
}

Result<void> SessionCore::add(std::string_view name) {
  BELAY_TRY(check_usable(true));
  const std::uint64_t entry = clock_.now_ns();
  auto* const region = regions_.find(name);
  if (region == nullptr)
    return fail(Code::not_found, "add '{}': no region of that name is protected", name);
  if (is_captured(region))
    return fail(Code::invalid_argument, "add '{}': the region was added already", name);
  auto added = within_memory([&]() -> Result<void> {
    BELAY_TRY(capture_region(std::string(name), *region));
    BELAY_TRY(capture_->flush());  // the program may write the region again
    if (together()) capture_->hold_unsafe();
    return {};
  });
  blocking_ns_ += clock_.now_ns() - entry;
  if (added) return {};
  // The other ranks will plan the version together, and must be told.
  if (together()) {
    if (!spoiled_) spoiled_ = added.error();
    return added;
  }
  return Unexpected(give_up_version(added.error(), clock_.now_ns()));
}

Result<Version> SessionCore::commit() {
  BELAY_TRY(check_usable(true));
  return capture_and_seal(clock_.now_ns());
}

Result<Version> SessionCore::capture_and_seal(std::uint64_t entry_ns) {
  Result<void> captured;
  if (spoiled_)
    captured = Unexpected(*std::exchange(spoiled_, {}));
  else
    captured = within_memory([&] { return capture_rest(); });
  if (together()) return share_and_seal(captured, entry_ns);
  if (!captured) return Unexpected(give_up_version(captured.error(), entry_ns));
  return seal_version(entry_ns);
}

Result<session::SegmentDoubts> SessionCore::doubt_segments(const Level& level) {
  session::PlaceSets sets;
  if (together()) {
    BELAY_ASSIGN(sets, sets_at(level));
  }
  const Manifest& older = catalog_.manifest();
  const std::size_t holding = older.holding_segments();
  session::SegmentDoubts doubts;
  doubts.missing.resize(holding);
  std::vector<SegmentRef> present(older.segments.begin(),
                                  older.segments.begin() + static_cast<std::ptrdiff_t>(holding));
  std::vector<std::uint64_t> live = catalog_.live_bytes();
  live.resize(holding);
  for (std::size_t i = 0; i < holding; ++i) {
    if (together() ? !is_unsafe(present[i], sets) : is_here(present[i])) continue;
    doubts.missing[i] = true;
    live[i] = present[i].file_bytes = 0;
  }
  std::uint64_t image = 0;
  for (const RegionRecord& region : older.regions) image += region.bytes;
  // A version may bring two: its own blocks, and those that others store.
  const std::size_t most = std::min<std::size_t>(settings_.segments, kMaxSegments - 2);
  doubts.carry = store::plan_carry(present, live, {.most_segments = most, .image_bytes = image});
  return doubts;
}

bool SessionCore::is_here(const SegmentRef& segment) {
  if (segment.id.rank == kAnyRank) return false;  // an earlier run has planned together
  const std::string name = format::segment_name(segment.id);
  const auto bytes = equipment_.tier.touch(name);
  if (bytes && *bytes == segment.file_bytes) return true;
  log_.warn("{}/{} is {}: its blocks are written again", equipment_.tier.place(), name,
            bytes ? "cut short" : "missing or unreadable (" + bytes.error().message() + ")");
  return false;
}

Result<void> SessionCore::start_version(std::uint64_t entry_ns) {
  BELAY_TRY(keep_house());
  // Before anything can fail: the other ranks count this version, and hear that it failed here.
  const VersionKey key{parts_.claim.run, holdings_.take_number()};
  missed_ = true;
  auto prepared = within_memory([&] { return prepare_version(key, entry_ns); });
  if (prepared) return {};
  if (capture_) {
    capture_->abandon(prepared.error());
    capture_.reset();
  } else if (flight_) {
    flight_->abandon(prepared.error());
    flight_->finish(nullptr);
  }
  return Unexpected(prepared.error().within(fmt::format("version {}", key.version)));
}

Level SessionCore::level_of(Version version) const {
  const Level due = settings_.level_plan().level_of(version);
  return healing_ && healing_->losses() > due.losses() ? *healing_ : due;
}

Result<void> SessionCore::prepare_version(VersionKey key, std::uint64_t entry_ns) {
  // Later versions are about as large as the one before; only the first must be measured.
  const std::uint64_t expected =
      stats_.captured == 0 ? regions_.bytes() : stats_.last.protected_bytes;
  if (!settings_.staging_bytes) staging_.grow(expected / 4);
  Manifest header;
  const vote::Claim& claim = parts_.claim;
  header.origin = {claim.identity.store, claim.identity.seed, key, rank_, parts_.group->size()};
  header.parent = catalog_.key();
  header.application = claim.identity.application;
  header.hash = settings_.hash;
  header.block_bytes = settings_.block_bytes;
  header.time_ns = clock_.wall_ns();
  header.ledger.version = key.version;
  header.level = level_of(key.version);
  header.global = settings_.diskless() || settings_.level_plan().is_global(key.version);
  if (together()) {
    BELAY_ASSIGN(layout_,
                 dedup::NodeLayout::make(parts_.nodes, copies_of(header.level), header.level));
  }
  const Level level = header.level;
  flight_ = std::make_shared<session::Flight>(equipment_, std::move(header), entry_ns);
  // Files that others copy, or that parity is made of, have their blocks where all can see them.
  if (equipment_.chooser != nullptr && !together()) flight_->encode();
  missed_ = false;
  const bool dedup = settings_.dedups();
  if (dedup && !index_is_current_) dedup_.index(catalog_.manifest());
  index_is_current_ = false;  // capture adds its own blocks to the index
  BELAY_ASSIGN(auto doubts, doubt_segments(level));
  capture_.emplace(equipment_, flight_, catalog_, dedup ? &dedup_ : nullptr, std::move(doubts),
                   together());
  capture_->expect(regions_.size(), expected);
  settle_ns_ = clock_.now_ns() - entry_ns;
  blocking_ns_ = 0;
  return {};
}

bool SessionCore::is_captured(const capture::Regions::Region* region) const {
  return region != nullptr && region->captured_in == flight_->manifest->origin.key.version;
}

Result<void> SessionCore::capture_region(const std::string& name,
                                         capture::Regions::Region& region) {
  RegionAccess& access = *region.access;
  const std::vector<bool>* dirty = nullptr;
  // What a serializer saves has no lasting address that a tracker could watch.
  if (access.type().kind != ElementKind::serialized) {
    BELAY_ASSIGN(const auto memory, within("region '" + name + "'", access.view()));
    dirty = dirty_sets_.collect(name, memory, settings_.block_bytes);
  }
  BELAY_TRY(capture_->add(name, access, dirty));
  region.captured_in = flight_->manifest->origin.key.version;
  return {};
}

Result<void> SessionCore::capture_rest() {
  for (auto& [name, region] : regions_)
    if (!is_captured(&region)) BELAY_TRY(capture_region(name, region));
  return capture_->flush();
}

void SessionCore::close_ledger(Ledger& ledger, std::uint64_t entry_ns) const {
  ledger.encoded_bytes = ledger.written_bytes;
  ledger.blocking_ns = blocking_ns_ + (clock_.now_ns() - entry_ns);
  ledger.settle_ns = std::min(settle_ns_, ledger.blocking_ns);
  ledger.stage_ns = capture_->stage_ns();
  ledger.wait_ns = capture_->wait_ns();
  ledger.detect_ns = ledger.blocking_ns - ledger.settle_ns - ledger.stage_ns - ledger.wait_ns;
  assert(ledger.balances());
}

void SessionCore::add_last_to_total() { add_to_sum(stats_.total, stats_.last); }

Result<Version> SessionCore::seal_version(std::uint64_t entry_ns) {
  // The flight's manifest belongs to the worker from seal() on: this is the last word before it.
  // Where ranks plan together, others have a copy of it, which must not differ.
  if (!together()) close_ledger(flight_->manifest->ledger, entry_ns);
  stats_.last = flight_->manifest->ledger;
  if (together()) close_ledger(stats_.last, entry_ns);
  if (planted(Mistake::delete_early)) {
    holdings_.exists(*flight_->manifest, vote::info_of(*flight_->manifest));
    holdings_.retire_versions(catalog_.key());
    submit_housekeeping(begin_housekeeping(holdings_.needs()));
  }
  const std::uint64_t sealing = clock_.now_ns();
  auto sealed = within_memory([&] {
    flight_->reuse(std::exchange(dedup_, {}));  // everything was captured by now
    return capture_->seal();
  });
  if (!sealed) return Unexpected(give_up_version(sealed.error(), entry_ns));
  const Version version = note_captured(clock_.now_ns() - sealing);
  if (flight_->finished() && flight_->error())
    return Unexpected(flight_->error()->within(fmt::format("version {}", version)));
  return version;
}

Version SessionCore::note_captured(std::uint64_t sealed_ns) {
  capture_.reset();
  stats_.last.wait_ns += sealed_ns;
  stats_.last.blocking_ns += sealed_ns;
  ++stats_.captured;
  schedule_.captured(stats_.last.blocking_ns);
  return stats_.last.version;
}

Error SessionCore::give_up_version(const Error& error, std::uint64_t entry_ns) {
  // What was not looked at any more belongs to no column of the ledger.
  Ledger& ledger = flight_->manifest->ledger;
  ledger.protected_bytes = ledger.untouched_bytes + ledger.unchanged_bytes +
                           ledger.duplicate_here_bytes + ledger.duplicate_elsewhere_bytes +
                           ledger.written_bytes;
  close_ledger(ledger, entry_ns);
  stats_.last = ledger;
  ++stats_.captured;
  capture_->abandon(error);
  capture_.reset();
  return error.within(fmt::format("version {}", stats_.last.version));
}

}  // namespace belay::detail
