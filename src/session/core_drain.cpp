// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/wire.hpp"
#include "session/core.hpp"
#include "vote/agreement.hpp"
#include "vote/publish.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace belay::detail {
namespace {

using Holder = catalog::Whereabouts::Holder;

/// The segment itself, on a node, unless it is damaged.
const Holder* original_of(const catalog::Whereabouts& whereabouts, const SegmentId& id) {
  for (const Holder& holder : whereabouts.holders(id))
    if (!holder.is_copy() && !holder.damaged && !whereabouts.is_global(holder.place))
      return &holder;
  return nullptr;
}

std::vector<std::byte> encode_ids(const std::vector<SegmentId>& ids) {
  vote::Needs needs;
  needs.segments = {ids.begin(), ids.end()};
  return session::encode_needs(needs, {});
}

std::set<SegmentId> decode_ids(std::span<const std::byte> bytes) {
  return session::decode_needs(bytes).first.segments;
}

/// Of the segments that hold blocks of this manifest those that another rank must copy, or copy
/// whole: that of another rank, or one that lies on another node.
std::vector<SegmentId> asked_of_others(const catalog::Whereabouts& whereabouts,
                                       const Manifest& manifest) {
  const Rank rank = manifest.origin.rank;
  std::set<VersionKey> elsewhere;
  for (std::size_t i = 0; i < manifest.holding_segments(); ++i)
    if (manifest.segments[i].id.rank == kAnyRank) elsewhere.insert(manifest.segments[i].id.key);
  std::vector<SegmentId> asked;
  for (const SegmentRef& segment : manifest.segments) {
    if (segment.id.rank == kAnyRank) continue;
    if (segment.id.rank != rank && !elsewhere.contains(segment.id.key)) continue;
    const Holder* const holder = original_of(whereabouts, segment.id);
    if (segment.id.rank != rank || holder == nullptr || holder->keeper != rank)
      asked.push_back(segment.id);
  }
  return asked;
}

}  // namespace

std::vector<aggregate::RankSet> SessionCore::rank_sets() const {
  return parts_.sets_over_nodes
             ? aggregate::sets_over_nodes(parts_.group->size(), settings_.aggregate)
             : aggregate::sets_on_nodes(parts_.nodes, settings_.aggregate);
}

Result<session::DrainWork> SessionCore::share_drain(const Manifest& manifest) {
  const auto& whereabouts = parts_.claim.whereabouts;
  std::vector<SegmentId> own;
  for (const SegmentRef& segment : manifest.segments)
    if (segment.id.rank == rank_) own.push_back(segment.id);
  BELAY_ASSIGN(const auto all_own, parts_.group->gather(encode_ids(own)));
  BELAY_ASSIGN(const auto all_asked,
               parts_.group->gather(encode_ids(asked_of_others(whereabouts, manifest))));
  session::DrainWork work;
  for (const aggregate::RankSet& set : rank_sets())
    if (set.aggregator() == rank_) work.set = set;
  // The ranks whose files this one reads.
  const std::vector<Rank> readers = parts_.sets_over_nodes ? std::vector{rank_} : work.set.members;
  const auto is_read = [&](Rank rank) {
    return std::find(readers.begin(), readers.end(), rank) != readers.end();
  };
  std::map<SegmentId, bool> whole;
  for (const Rank rank : readers)
    for (const SegmentId& id : decode_ids(all_own[rank])) {
      const Holder* const holder = original_of(whereabouts, id);
      if (holder != nullptr && holder->keeper == rank) whole[id] = false;
    }
  for (const auto& bytes : all_asked)
    for (const SegmentId& id : decode_ids(bytes)) {
      const Holder* const holder = original_of(whereabouts, id);
      // All ranks see this, and all give up.
      if (holder == nullptr)
        return fail(Code::corruption,
                    "the segment of rank {} and version {} is on no node any more", id.rank,
                    id.key.version);
      if (is_read(holder->keeper)) whole[id] = true;
    }
  for (const auto& [id, all_blocks] : whole) {
    const Holder* const holder = original_of(whereabouts, id);
    auto& task = work.tasks.emplace_back(session::DrainTask{
        id, holder->keeper, all_blocks, holder->place, whereabouts.directory(holder->place), {}});
    for (const Holder& copy : whereabouts.holders(id))
      if (whereabouts.is_global(copy.place) && !copy.damaged)
        task.copied.push_back(whereabouts.directory(copy.place));
  }
  return work;
}

Result<void> SessionCore::start_drain(bool may_skip) {
  const Manifest& manifest = catalog_.manifest();
  const Version version = manifest.origin.key.version;
  if (drain_ && may_skip) {
    log_.warn("version {} does not go to the global tier: version {} is still on its way there",
              version, drain_->origin().key.version);
    return {};
  }
  BELAY_TRY(end_drain());
  auto work = share_drain(manifest);
  if (!work && work.error().code() == Code::peer_lost) return Unexpected(work.error());
  if (!work) {
    report_drain_failure(version, work.error());
    return {};
  }
  std::function<void()> job;
  const auto made = vote::agree(*parts_.group, within_memory([&]() -> Result<void> {
    const bool by_head = parts_.drain_line && !work->set.members.empty() && !parts_.sets_over_nodes;
    const auto drained = session::DrainedVersion::of(manifest);
    auto order = by_head ? order_drain(drained, *work) : std::vector<std::byte>();
    drain_ = std::make_shared<session::Drain>(drain_places(), drained, *std::move(work));
    job = [drain = drain_] { drain->run(); };
    if (by_head)
      job = [drain = drain_, head = parts_.drain_line.get(), order = std::move(order)] {
        drain->land(head->send_off(order, drain->cancelled()));
      };
    return {};
  }));
  if (!made) {
    drain_.reset();
    report_drain_failure(version, made.error());
    return made.error().code() == Code::peer_lost ? made : Result<void>{};
  }
  return drains_in_call() ? drain_in_call() : submit_drain(std::move(job));
}

session::DrainPlaces SessionCore::drain_places() {
  ranks::Group* const over_nodes = parts_.drains ? parts_.drains.get() : parts_.group.get();
  return {equipment_.tier,
          *parts_.claim.global->tier,
          *parts_.claim.sight,
          equipment_.hasher,
          *parts_.global_chooser,
          clock_,
          log_,
          settings_.match,
          parts_.sets_over_nodes ? over_nodes : nullptr,
          parts_.drain_threads,
          parts_.encode_threads,
          drain_bytes()};
}

Result<void> SessionCore::submit_drain(std::function<void()> job) {
  const auto submitted = within_memory([&]() -> Result<void> {
    parts_.drain_worker->submit(std::move(job));
    return {};
  });
  if (!submitted) drain_->land({.result = Unexpected(submitted.error())});
  return settings_.background == Background::inline_ ? end_drain() : Result<void>{};
}

Result<void> SessionCore::drain_in_call() {
  // Files that are being removed are gone before it is looked at what the tier has.
  BELAY_TRY(await_drain_workers([&] { return !parts_.drain_worker->pending(); }));
  drain_->run();
  const Result<void>& done = drain_->report().result;
  if (done || done.error().code() != Code::peer_lost) return finish_drain();
  // Others may be anywhere: who would ask them for more might get the answer to something else.
  lost_ = done.error().within(fmt::format("version {}: global tier", drain_->origin().key.version));
  log_.write(LogLevel::error, "{}", lost_->message());
  drain_.reset();
  return Unexpected(*lost_);
}

std::vector<std::byte> SessionCore::order_drain(const session::DrainedVersion& version,
                                                const session::DrainWork& work) {
  const auto directories = [](store::Tier& tier) {
    std::vector<std::string> names;
    for (const store::Tier* place : tier.places()) names.push_back(place->place());
    return names;
  };
  return session::encode_drain_order({.nodes = directories(equipment_.tier),
                                      .global = directories(*parts_.claim.global->tier),
                                      .sight = directories(*parts_.claim.sight),
                                      .version = version,
                                      .work = work});
}

void SessionCore::cancel_drain() {
  if (drain_) drain_->cancel();
  if (parts_.drain_worker) parts_.drain_worker->wait_all();
}

Result<void> SessionCore::await_drain_workers(const std::function<bool()>& done) {
  constexpr std::uint64_t kMostNs = 1'000'000'000;
  // One rank writes for many, and may well take longer than these wait for a silent peer.
  for (;;) {
    parts_.drain_worker->wait_all_for(std::min(kMostNs, settings_.timeout_ns / 4));
    std::array<std::uint64_t, 1> least{done() ? 1u : 0u};
    BELAY_TRY(parts_.group->reduce(least, ranks::Reduction::min));
    if (least[0] == 1) return {};
  }
}

Result<void> SessionCore::end_drain() {
  if (!drain_) return {};
  BELAY_TRY(await_drain_workers([&] { return drain_->finished(); }));
  return finish_drain();
}

Result<void> SessionCore::finish_drain() {
  const auto drain = std::exchange(drain_, {});
  const session::DrainReport& report = drain->report();
  vote::Claim& claim = parts_.claim;
  const VersionKey key = drain->origin().key;
  // If the group of drains has lost a peer, that costs the drain; if this one has, gather() says
  // so.
  const auto agreed = vote::agree(*parts_.group, report.result);
  std::vector<SegmentId> bundled;
  for (const vote::KeptBundle& bundle : report.bundles)
    bundled.insert(bundled.end(), bundle.segments.begin(), bundle.segments.end());
  BELAY_ASSIGN(const auto copies, parts_.group->gather(encode_ids(bundled)));
  for (Rank rank = 0; rank < copies.size(); ++rank) {
    const auto place = claim.whereabouts.place(claim.global->directories[rank]);
    for (const SegmentId& id : decode_ids(copies[rank]))
      claim.whereabouts.add({id, FileKind::copy, 0, 0}, place, rank);
  }
  for (const vote::KeptBundle& bundle : report.bundles) holdings_.wrote_global(bundle);
  learn_bandwidth(report.written);
  if (!report.codecs.empty()) head_codecs_ = report.codecs;
  global_rounds_ = kGlobalRounds;
  if (!agreed) {
    holdings_.not_drained(key, drain->segments(), report.bundles);
    report_drain_failure(key.version, agreed.error());
    return tell_damaged(report.damaged);
  }
  holdings_.drained(key, drain->segments());
  for (const aggregate::RankSet& set : rank_sets())
    for (const Rank rank : set.members)
      claim.sources.add(key, rank, rank, claim.global->directories[set.aggregator()],
                        /*global=*/true);
  if (!report.bundles.empty())
    log_.info("version {} is on the global tier: {} of {} written", key.version,
              format_bytes(report.written.file_bytes), format_bytes(report.written.raw_bytes));
  if (report.bundles.size() > 1)
    log_.info(
        "version {}: what the tables of {} ranks take is more than `staging` has room for: "
        "{} files instead of one",
        key.version, drain->members(), report.bundles.size());
  return {};
}

void SessionCore::learn_bandwidth(const aggregate::WrittenBundle& written) {
  if (!settings_.bandwidth && written.bandwidth)
    parts_.global_chooser->set_bandwidth(*written.bandwidth);
}

void SessionCore::report_drain_failure(Version version, const Error& error) {
  const Error told = error.within(fmt::format("version {}: global tier", version));
  stats_.last_failure = told.message();
  log_.warn("{} (it exists on nodes; the next version that is due there tries again)",
            told.message());
}

Result<void> SessionCore::keep_global_house() {
  finish_global_housekeeping();
  // The same on all ranks, but for a round under way, which takes longer than a version.
  if (!parts_.claim.global || global_rounds_ == 0 || !holdings_.made_version()) return {};
  --global_rounds_;
  vote::Claim& claim = parts_.claim;
  const bool apart = !planted(Mistake::remove_early);
  if (!apart) retire_global();
  vote::Needs needs = holdings_.global_needs();
  if (drain_) needs.segments.insert(drain_->segments().begin(), drain_->segments().end());
  BELAY_ASSIGN(const auto all, parts_.group->gather(session::encode_needs(needs, {})));
  for (const auto& bytes : all) needs.add(session::decode_needs(bytes).first);
  needs.add_retiring();
  for (const SegmentId& id : claim.whereabouts.segments())
    if (holdings_.may_go(id) && !needs.has(id)) claim.whereabouts.remove(id, /*global=*/true);
  auto round = global_housekeeping_ ? nullptr : std::make_shared<Housekeeping>();
  if (round) holdings_.release_global(needs);
  // What these count on stays until an exchange to come has shown that all ranks have hidden them.
  if (apart) retire_global();
  submit_global_housekeeping(std::move(round));
  return {};
}

void SessionCore::retire_global() {
  for (const VersionKey& key : holdings_.retire_global())
    parts_.claim.sources.forget(key, /*global=*/true);
}

void SessionCore::submit_global_housekeeping(std::shared_ptr<Housekeeping> round) {
  if (!round) return;  // what is retired by now goes with the next
  round->left = holdings_.take_global_retired();
  if (round->left.empty()) return holdings_.give_back_global({});
  global_housekeeping_ = round;
  // After a drain that was submitted before, and before one that comes: neither sees a copy vanish
  // that it counts on.
  const auto submitted = within_memory([&]() -> Result<void> {
    parts_.drain_worker->submit([this, round] {
      const auto removed = within_memory([&]() -> Result<void> {
        store::Tier& tier = *parts_.claim.global->tier;
        BELAY_TRY(vote::check_still_ours(tier, parts_.claim.run));
        round->left = vote::remove_retired(tier, round->left, log_);
        return {};
      });
      if (!removed) log_.warn("retire: {}", removed.error().message());
      round->done.store(true, std::memory_order_release);
    });
    return {};
  });
  if (!submitted) round->done.store(true, std::memory_order_release);
  if (settings_.background == Background::inline_) parts_.drain_worker->wait_all();
}

void SessionCore::finish_global_housekeeping() {
  if (!global_housekeeping_ || !global_housekeeping_->done.load(std::memory_order_acquire)) return;
  holdings_.give_back_global(global_housekeeping_->left);
  global_housekeeping_.reset();
}

}  // namespace belay::detail
