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

std::string name_of(const session::LostFile& file) {
  return file.copy ? format::copy_name(file.id) : format::segment_name(file.id);
}

}  // namespace

std::vector<session::LostFile> SessionCore::look_for_lost_files() {
  std::vector<session::LostFile> lost;
  const auto& whereabouts = parts_.claim.whereabouts;
  for (const SegmentId& id : whereabouts.segments())
    for (const auto& holder : whereabouts.holders(id)) {
      if (holder.keeper != rank_ || whereabouts.is_global(holder.place)) continue;
      const session::LostFile file{id, holder.copy, holder.place};
      auto& place = store::place_in(equipment_.tier, whereabouts.directory(holder.place));
      const auto bytes = place.touch(name_of(file));
      // Nobody has written down how long a partial copy is, so only its absence shows.
      if (bytes && (*bytes == holder.bytes || holder.bytes == 0)) continue;
      lost.push_back(file);
      log_.warn("{}/{} is {}: its blocks are written again", equipment_.tier.place(), name_of(file),
                bytes ? "cut short" : "missing or unreadable (" + bytes.error().message() + ")");
    }
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
    for (const session::LostFile& file : lost) whereabouts.remove(file.id, file.copy, file.place);
  }
  for (const SegmentId& id : whereabouts.segments())
    if (holdings_.may_go(id) && !needs.has(id)) whereabouts.remove(id, /*global=*/false);
  return needs;
}

Result<void> SessionCore::tell_damaged(const std::vector<session::LostFile>& damaged) {
  BELAY_ASSIGN(const auto all, parts_.group->gather(session::encode_needs({}, damaged)));
  for (const auto& bytes : all)
    for (const session::LostFile& file : session::decode_needs(bytes).second)
      parts_.claim.whereabouts.damaged(file.id, file.copy, file.place);
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
      if (!holder.copy && holder.keeper == rank_) damaged.push_back({id, false, holder.place});
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
  const Level level = flight_->manifest->level;
  BELAY_ASSIGN(const auto plan, session::plan_version(*parts_.group, *layout_, settings_,
                                                      settings_.dedup_of(level), blocks));
  capture_->place(plan, static_cast<std::uint16_t>(level.losses() + 1));
  close_ledger(flight_->manifest->ledger, entry_ns);
  shares_ = plan.shares;
  keepers_.clear();
  for (Rank rank = 0; rank < parts_.group->size(); ++rank)
    keepers_.push_back(plan.manifest_keepers(*layout_, rank));
  auto staged = within_memory([&] { return capture_->stage_stored(plan); });
  BELAY_TRY(exchange_copies(plan, brought));
  return staged;
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
  const std::uint64_t window_bytes =
      std::max({kLeastWindowBytes, settings_.staging_bytes.value_or(0) / kWindowsPerStaging,
                std::uint64_t{4} * settings_.block_bytes});
  BELAY_ASSIGN(const auto rounds, dedup::Rounds::make(window_bytes, settings_.block_bytes));
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
    const auto add = [&](Rank keeper, bool copy, std::uint64_t bytes) {
      claim.whereabouts.add({id, copy, bytes}, claim.whereabouts.place(claim.directories[keeper]),
                            keeper);
    };
    if (shares_[rank].file_bytes > 0) add(rank, false, shares_[rank].file_bytes);
    for (const session::Parcel& parcel : shares_[rank].parcels) add(parcel.receiver, true, 0);
    claim.sources.add(key, rank, rank, claim.directories[rank], /*global=*/false);
    for (const Rank keeper : keepers_[rank])
      claim.sources.add(key, rank, keeper, claim.directories[keeper], /*global=*/false);
  }
}

}  // namespace belay::detail
