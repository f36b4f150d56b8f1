// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "session/core.hpp"
#include "session/stripe_plan.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace belay::detail {
namespace {

std::string name_of(const session::LostFile& file) { return format::file_name(file.id, file.kind); }

}  // namespace

std::vector<session::LostFile> SessionCore::look_for_lost_files() {
  std::vector<session::LostFile> lost;
  const auto& whereabouts = parts_.claim.whereabouts;
  const auto look = [&](const SegmentId& id, const auto& holders) {
    for (const auto& holder : holders) {
      if (holder.keeper != rank_ || whereabouts.is_global(holder.place)) continue;
      if (parts_.bundles && holder.is_copy()) continue;
      const session::LostFile file{id, holder.kind, holder.place};
      auto& place = store::place_in(equipment_.tier, whereabouts.directory(holder.place));
      const auto bytes = place.touch(name_of(file));
      // Nobody has written down how long a partial copy or a shard is: only its absence shows.
      if (bytes && (*bytes == holder.bytes || holder.bytes == 0)) continue;
      lost.push_back(file);
      log_.warn("{}/{} is {}: its blocks are written again", equipment_.tier.place(), name_of(file),
                bytes ? "cut short" : "missing or unreadable (" + bytes.error().message() + ")");
    }
  };
  for (const SegmentId& id : whereabouts.segments()) look(id, whereabouts.holders(id));
  for (const SegmentId& id : whereabouts.all_shards()) look(id, whereabouts.shards(id));
  if (parts_.bundles)
    for (const session::LostFile& file : look_for_lost_bundles()) lost.push_back(file);
  return lost;
}

Result<vote::Needs> SessionCore::exchange_needs() {
  const auto mine = session::encode_needs(holdings_.needs(), look_for_lost_files());
  BELAY_ASSIGN(const auto all, parts_.group->gather(mine));
  vote::Needs needs = holdings_.needs();
  auto& whereabouts = parts_.claim.whereabouts;
  for (const auto& bytes : all) {
    const auto [theirs, lost] = session::decode_needs(bytes);
    if (!planted(Mistake::delete_needed)) needs.add(theirs);
    for (const session::LostFile& file : lost) whereabouts.remove(file.id, file.kind, file.place);
  }
  needs.add_retiring();
  needs.complete(whereabouts.stripes());
  for (const SegmentId& id : whereabouts.segments())
    if (holdings_.may_go(id) && !needs.has(id)) whereabouts.remove(id, /*global=*/false);
  for (const Stripe* const stripe : whereabouts.stripes()) {
    const SegmentId shard = shard_id(stripe->key, stripe->number, 0);
    if (holdings_.may_go(shard) && !needs.has_shard(shard))
      whereabouts.remove_stripe(stripe->key, stripe->number);
  }
  return needs;
}

Result<void> SessionCore::tell_damaged(const std::vector<session::LostFile>& damaged) {
  BELAY_ASSIGN(const auto all, parts_.group->gather(session::encode_needs({}, damaged)));
  for (const auto& bytes : all)
    for (const session::LostFile& file : session::decode_needs(bytes).second)
      parts_.claim.whereabouts.damaged(file.id, file.kind, file.place);
  return {};
}

std::vector<session::LostFile> SessionCore::damaged_here(
    const std::vector<session::LostBlock>& blocks) const {
  std::set<SegmentId> ids;
  for (const session::LostBlock& block : blocks)
    if (block.id.rank != kAnyRank) ids.insert(block.id);
  std::vector<session::LostFile> damaged;
  const auto& whereabouts = parts_.claim.whereabouts;
  for (const SegmentId& id : ids)
    for (const auto& holder : whereabouts.holders(id))
      if (!holder.is_copy() && holder.keeper == rank_)
        damaged.push_back({id, FileKind::segment, holder.place});
  return damaged;
}

Result<session::PlaceSets> SessionCore::sets_at(const Level& level) {
  BELAY_ASSIGN(const auto layout, dedup::NodeLayout::make(parts_.nodes, level.losses() + 1, level));
  return session::PlaceSets(layout, level.losses(), parts_.claim.directories,
                            parts_.claim.whereabouts);
}

bool SessionCore::is_unsafe(const SegmentRef& segment, const session::PlaceSets& sets) const {
  if (planted(Mistake::skip_healing)) return false;
  // Which of these files has which block is not known here, only that each block is on `nodes` of
  // the nodes that copies of this version are on.
  std::set<catalog::Whereabouts::Place> with_copies;
  std::uint32_t nodes = std::numeric_limits<std::uint32_t>::max();
  for (const SegmentRef& other : catalog_.manifest().segments) {
    if (other.id.key != segment.id.key) continue;
    nodes = std::min(nodes, std::max<std::uint32_t>(other.nodes, 1));
    if (other.id.rank == kAnyRank) continue;
    const auto places = parts_.claim.whereabouts.places_if_whole(other, sets.losses() > 0);
    if (places.empty()) return true;
    // Equal blocks outside of stripes are on nodes of one set, all of which have seats here.
    if (other.shards > 0 && sets.most_lost_of(places) >= other.nodes) return true;
    if (other.shards == 0) with_copies.insert(places.begin(), places.end());
  }
  return nodes <= sets.losses() ||
         sets.most_lost_of({with_copies.begin(), with_copies.end()}) >= nodes;
}

Result<bool> SessionCore::agree_captured(const Result<void>& captured, bool holds) {
  BELAY_ASSIGN(const Meeting all,
               meet(Call::commit, {.agrees = captured.has_value(), .holds = holds}));
  if (!all.agrees) BELAY_TRY(vote::agree(*parts_.group, captured));
  return all.holds;
}

std::uint32_t SessionCore::copies_of(const Level& level) const {
  const bool less = planted(Mistake::one_copy_less) && level.losses() > 0;
  return level.losses() + 1 - less;
}

std::shared_ptr<session::Voyage> SessionCore::make_voyage(session::Cargo cargo) {
  ranks::Group& group = parts_.voyages ? *parts_.voyages : *parts_.group;
  return std::make_shared<session::Voyage>(
      equipment_, flight_, std::move(cargo),
      session::Voyage::Course{.group = group, .layout = *layout_, .windows = windows_});
}

Result<Version> SessionCore::share_and_seal(const Result<void>& captured, std::uint64_t entry_ns) {
  const bool may_hold = parts_.voyages || parts_.head;
  // A lack of memory here means that this version is shared at once.
  const auto reserved =
      within_memory([&]() -> Result<bool> { return captured && may_hold && capture_->reserve(); });
  const bool holds = reserved && *reserved;
  const auto background = agree_captured(captured, holds);
  if (!background) return Unexpected(give_up_version(background.error(), entry_ns));
  if (*background) return share_in_background(entry_ns);
  if (holds) capture_->give_back_reserved();
  if (parts_.bundles) return bundle_here(entry_ns);
  const auto shared = within_memory([&] { return share_here(entry_ns); });
  if (!shared) return Unexpected(give_up_version(shared.error(), entry_ns));
  return seal_version(entry_ns);
}

Result<void> SessionCore::share_here(std::uint64_t entry_ns) {
  const auto voyage = make_voyage(capture_->take_cargo());
  BELAY_TRY(voyage->plan());
  close_ledger(flight_->manifest->ledger, entry_ns);
  // In this order what is staged, whose fingerprints are checked, shows that nothing has changed
  // while parity was made of it.
  BELAY_TRY(voyage->exchange(*parts_.worker));
  return capture_->stage(voyage->stored());
}

Result<Version> SessionCore::share_in_background(std::uint64_t entry_ns) {
  auto sent = within_memory([&]() -> Result<void> {
    capture_->hold();
    BELAY_ASSIGN(auto job, background_job(take_cargo_and_close(entry_ns)));
    flight_->reuse(std::exchange(dedup_, {}));
    parts_.worker->submit(std::move(job));
    return {};
  });
  if (!sent) return Unexpected(give_up_version(sent.error(), entry_ns));
  return note_captured(0);
}

session::Cargo SessionCore::take_cargo_and_close(std::uint64_t entry_ns) {
  session::Cargo cargo = capture_->take_cargo();
  Ledger& ledger = flight_->manifest->ledger;
  ledger.written_bytes = cargo.bytes();  // the plan will say how much of it others store
  close_ledger(ledger, entry_ns);
  stats_.last = ledger;
  return cargo;
}

Result<std::function<void()>> SessionCore::background_job(session::Cargo cargo) {
  if (parts_.bundles) return bundling_job(std::move(cargo));
  if (!parts_.head)
    return std::function<void()>([voyage = make_voyage(std::move(cargo))] { voyage->run(); });
  BELAY_ASSIGN(auto order, order_for_head(std::move(cargo)));
  return std::function<void()>([flight = flight_, head = parts_.head.get(),
                                order = std::move(order)] { flight->land(head->send_off(order)); });
}

Result<std::vector<std::byte>> SessionCore::order_for_head(session::Cargo cargo) {
  staging_.release(cargo.scratch);  // the head has its own
  session::Order order;
  order.manifest = *flight_->manifest;
  order.directory = parts_.claim.directories[rank_];
  order.nodes = parts_.nodes;
  order.copies = copies_of(order.manifest.level);
  order.start_ns = flight_->start_ns();
  order.own_segment = cargo.own_segment;
  order.counted_on = std::move(cargo.counted_on);
  auto buffer = flight_->held().begin();
  for (const session::UnsafeBlock& block : cargo.unsafe) {
    const auto is_in = [&](const capture::StagingBuffer& held) {
      const auto memory = held.memory.bytes();
      return block.bytes.data() >= memory.data() &&
             block.bytes.data() < memory.data() + memory.size();
    };
    while (!is_in(**buffer)) ++buffer;  // blocks lie in the order of the buffers
    order.pieces.push_back({.at = session::HeadLine::place_of(**buffer, block.bytes.data()),
                            .block = block.block,
                            .region = block.region,
                            .length = static_cast<std::uint32_t>(block.bytes.size())});
  }
  return session::encode_order(order);
}

Result<void> SessionCore::name_kept_manifests() {
  return vote::agree(*parts_.group, flight_->name_kept_manifests());
}

void SessionCore::note_whereabouts() {
  stats_.sent_bytes += flight_->sent_bytes;
  stats_.kept_bytes += flight_->kept_bytes;
  if (parts_.bundles) return note_bundles();
  vote::Claim& claim = parts_.claim;
  const VersionKey key = flight_->manifest->origin.key;
  for (Rank rank = 0; rank < flight_->shares.size(); ++rank) {
    const SegmentId id{key, rank};
    const auto add = [&](Rank keeper, FileKind kind, std::uint64_t bytes) {
      claim.whereabouts.add({id, kind, bytes, 0},
                            claim.whereabouts.place(claim.directories[keeper]), keeper);
    };
    if (flight_->shares[rank].file_bytes > 0)
      add(rank, FileKind::segment, flight_->shares[rank].file_bytes);
    for (const session::Parcel& parcel : flight_->shares[rank].parcels)
      add(parcel.receiver, FileKind::copy, 0);
    claim.sources.add(key, rank, rank, claim.directories[rank], /*global=*/false);
    for (const Rank keeper : flight_->keepers[rank])
      claim.sources.add(key, rank, keeper, claim.directories[keeper], /*global=*/false);
  }
  note_stripes();
}

/// Every rank computes them from what each has stored.
void SessionCore::note_stripes() {
  const Manifest& manifest = *flight_->manifest;
  if (!manifest.level.has_parity()) return;
  const auto stripes =
      session::plan_stripes(*layout_, manifest.level, manifest.origin.key, flight_->shares);
  if (!stripes) return log_.warn("stripes: {}", stripes.error().message());
  vote::Claim& claim = parts_.claim;
  const VersionKey key = manifest.origin.key;
  for (const session::PlannedStripe& planned : *stripes) {
    claim.whereabouts.add(planned.stripe);
    for (std::uint32_t seat = 0; seat < planned.stripe.seats(); ++seat)
      for (std::uint32_t i = 0; i < planned.stripe.level.shards; ++i) {
        const Rank keeper = planned.keepers[seat];
        claim.whereabouts.add({shard_id(key, planned.stripe.number, i), FileKind::shard, 0, seat},
                              claim.whereabouts.place(claim.directories[keeper]), keeper);
      }
  }
}

}  // namespace belay::detail
