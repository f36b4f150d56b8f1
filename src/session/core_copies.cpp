// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/vector_sink.hpp"
#include "session/core.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <set>

namespace belay::detail {
namespace {

// Of the memory for capture so much is lent to each of two windows.
constexpr std::uint64_t kWindowsPerStaging = 8;
constexpr std::uint64_t kLeastWindowBytes = std::uint64_t{8} << 20;

std::string name_of(const session::LostFile& file) { return format::file_name(file.id, file.kind); }

}  // namespace

std::vector<session::LostFile> SessionCore::look_for_lost_files() {
  std::vector<session::LostFile> lost;
  const auto& whereabouts = parts_.claim.whereabouts;
  const auto look = [&](const SegmentId& id, const auto& holders) {
    for (const auto& holder : holders) {
      if (holder.keeper != rank_) continue;
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
  needs.complete(whereabouts.stripes());
  for (const SegmentId& id : whereabouts.segments())
    if (holdings_.may_go(id) && !needs.has(id)) whereabouts.remove(id);
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
      parts_.claim.whereabouts.remove(file.id, file.kind, file.place);
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

bool SessionCore::is_unsafe(const SegmentRef& segment, const Level& level) const {
  if (planted(Mistake::skip_healing)) return false;
  const auto& all = catalog_.manifest().segments;
  return std::any_of(all.begin(), all.end(), [&](const SegmentRef& other) {
    if (other.id.key != segment.id.key) return false;
    if (std::max<std::uint32_t>(other.nodes, 1) <= level.losses()) return true;
    return other.id.rank != kAnyRank && !parts_.claim.whereabouts.safe(other, level.losses());
  });
}

Result<void> SessionCore::share_version(const Result<void>& captured, std::uint64_t entry_ns) {
  BELAY_ASSIGN(const Meeting all, meet(Call::commit, {.agrees = captured.has_value()}));
  if (!all.agrees) return vote::agree(*parts_.group, captured);
  std::vector<session::BroughtBlock> brought;
  std::vector<dedup::Block> blocks;
  for (const auto& unsafe : capture_->unsafe()) {
    blocks.push_back({flight_->manifest->fingerprints[unsafe.block],
                      static_cast<std::uint32_t>(unsafe.bytes.size())});
    brought.push_back({blocks.back(), unsafe.bytes});
  }
  BELAY_ASSIGN(const auto plan, session::plan_version(*parts_.group, *layout_, settings_,
                                                      flight_->manifest->level, blocks));
  capture_->place(plan);
  close_ledger(flight_->manifest->ledger, entry_ns);
  shares_ = plan.shares;
  stripes_.clear();
  for (const session::Parcel& parcel : shares_[rank_].parcels) stats_.sent_bytes += parcel.bytes;
  for (const std::uint64_t bytes : plan.bytes_to(rank_)) stats_.kept_bytes += bytes;
  keepers_.clear();
  for (Rank rank = 0; rank < parts_.group->size(); ++rank)
    keepers_.push_back(plan.manifest_keepers(*layout_, rank));
  auto staged = within_memory([&] { return capture_->stage_stored(plan); });
  BELAY_TRY(exchange_copies(plan, brought));
  if (flight_->manifest->level.kind == Level::Kind::erasure) {
    BELAY_TRY(exchange_shards(plan, brought));
    if (staged) staged = check_unchanged(brought);
  }
  return staged;
}

std::uint64_t SessionCore::window_bytes() const {
  return std::max({kLeastWindowBytes, settings_.staging_bytes.value_or(0) / kWindowsPerStaging,
                   std::uint64_t{4} * settings_.block_bytes});
}

Result<void> SessionCore::exchange_shards(const session::VersionPlan& plan,
                                          std::span<const session::BroughtBlock> brought) {
  ranks::Group& group = *parts_.group;
  const Manifest& manifest = *flight_->manifest;
  BELAY_ASSIGN(stripes_,
               vote::agree_on(group, session::plan_stripes(*layout_, manifest.level,
                                                           manifest.origin.key, plan.shares)));
  if (stripes_.empty()) return {};
  std::optional<session::SegmentImage> image;
  auto made = within_memory([&]() -> Result<session::StripeExchange> {
    if (!plan.blocks.stored().empty()) {
      BELAY_ASSIGN(
          image, session::SegmentImage::make({manifest.origin, manifest.hash, manifest.block_bytes},
                                             plan, brought));
    }
    return session::StripeExchange::make(group, stripes_, image ? &*image : nullptr,
                                         window_bytes());
  });
  BELAY_ASSIGN(auto exchange, vote::agree_on(group, std::move(made)));
  flight_->expect_shards(
      std::make_unique<session::KeptShards>(equipment_, exchange.shards(manifest.origin)));
  return exchange.run(
      windows_,
      [&](std::vector<session::KeptShards::Piece> pieces, std::atomic<bool>& done) {
        parts_.worker->submit(
            [flight = flight_, pieces = std::move(pieces), &done] { flight->keep(pieces, done); });
      },
      [&] { parts_.worker->wait_one(); });
}

Result<void> SessionCore::check_unchanged(std::span<const session::BroughtBlock> brought) const {
  std::atomic<std::size_t> changed = brought.size();
  constexpr std::size_t kBatch = 64;
  parts_.parallel->run((brought.size() + kBatch - 1) / kBatch, [&](std::size_t batch) {
    for (std::size_t i = batch * kBatch; i < std::min((batch + 1) * kBatch, brought.size()); ++i)
      if (equipment_.hasher.hash(brought[i].bytes) != brought[i].block.fingerprint) changed = i;
  });
  if (changed == brought.size()) return {};
  const auto& region = flight_->manifest->regions[capture_->unsafe()[changed].region];
  return fail(Code::invalid_argument,
              "region '{}' changed during checkpoint(); nobody may write protected memory between "
              "its entry and return",
              region.name);
}

Result<void> SessionCore::exchange_copies(const session::VersionPlan& plan,
                                          std::span<const session::BroughtBlock> brought) {
  ranks::Group& group = *parts_.group;
  const session::CopyExchange exchange{group, *layout_, plan, brought};
  format::VectorSink manifest;
  BELAY_TRY(vote::agree(group, format::encode_manifest(*flight_->manifest, manifest)));
  BELAY_ASSIGN(auto sources, vote::agree_on(group, exchange.announce(manifest.bytes())));
  const Manifest& header = *flight_->manifest;
  flight_->expect_copies(std::make_unique<session::KeptCopies>(
      equipment_, format::SegmentHeader{header.origin, header.hash, header.block_bytes}, sources));
  BELAY_ASSIGN(const auto rounds, dedup::Rounds::make(window_bytes(), settings_.block_bytes));
  return exchange.move_blocks(
      sources, rounds, windows_,
      [&](std::vector<session::KeptCopies::Arrival> arrivals, std::atomic<bool>& done) {
        parts_.worker->submit([flight = flight_, arrivals = std::move(arrivals), &done] {
          flight->keep(arrivals, done);
        });
      },
      [&] { parts_.worker->wait_one(); });
}

Result<void> SessionCore::name_kept_manifests() {
  auto named = vote::agree(*parts_.group, flight_->name_kept_manifests());
  if (named || named.error().code() == Code::peer_lost) return named;
  log_.warn("copies of manifests: {}", named.error().message());
  keepers_.assign(keepers_.size(), {});  // nobody counts on them
  return {};
}

void SessionCore::note_whereabouts() {
  vote::Claim& claim = parts_.claim;
  const VersionKey key = flight_->manifest->origin.key;
  for (Rank rank = 0; rank < shares_.size(); ++rank) {
    const SegmentId id{key, rank};
    const auto add = [&](Rank keeper, FileKind kind, std::uint64_t bytes) {
      claim.whereabouts.add({id, kind, bytes, 0},
                            claim.whereabouts.place(claim.directories[keeper]), keeper);
    };
    if (shares_[rank].file_bytes > 0) add(rank, FileKind::segment, shares_[rank].file_bytes);
    for (const session::Parcel& parcel : shares_[rank].parcels)
      add(parcel.receiver, FileKind::copy, 0);
    claim.sources.add(key, rank, rank, claim.directories[rank]);
    for (const Rank keeper : keepers_[rank])
      claim.sources.add(key, rank, keeper, claim.directories[keeper]);
  }
  for (const session::PlannedStripe& planned : stripes_) {
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
