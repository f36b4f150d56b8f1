// SPDX-License-Identifier: Apache-2.0
#include "session/voyage.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/vector_sink.hpp"
#include "session/segment_image.hpp"
#include "session/stripe_exchange.hpp"
#include "session/stripe_plan.hpp"
#include "vote/agreement.hpp"

#include <algorithm>

namespace belay::session {
namespace {

// Of the memory for capture so much is lent to each of two windows.
constexpr std::uint64_t kWindowsPerStaging = 8;
constexpr std::uint64_t kLeastWindowBytes = std::uint64_t{8} << 20;

}  // namespace

std::uint64_t Cargo::bytes() const {
  std::uint64_t sum = 0;
  for (const UnsafeBlock& block : unsafe) sum += block.bytes.size();
  return sum;
}

Voyage::Voyage(Equipment& equipment, std::shared_ptr<Flight> flight, Cargo cargo, Course course)
    : equipment_(equipment),
      flight_(std::move(flight)),
      manifest_(*flight_->manifest),
      cargo_(std::move(cargo)),
      course_(course) {}

Result<void> Voyage::plan() {
  for (const UnsafeBlock& unsafe : cargo_.unsafe) {
    blocks_.push_back(
        {manifest_.fingerprints[unsafe.block], static_cast<std::uint32_t>(unsafe.bytes.size())});
    brought_.push_back({blocks_.back(), unsafe.bytes});
  }
  BELAY_ASSIGN(plan_, plan_version(course_.group, course_.layout, equipment_.settings,
                                   manifest_.level, blocks_));
  place();
  flight_->shares = plan_->shares;
  for (Rank rank = 0; rank < course_.group.size(); ++rank)
    flight_->keepers.push_back(plan_->manifest_keepers(course_.layout, rank));
  const Rank rank = course_.group.rank();
  for (const Parcel& parcel : plan_->shares[rank].parcels) flight_->sent_bytes += parcel.bytes;
  for (const std::uint64_t bytes : plan_->bytes_to(rank)) flight_->kept_bytes += bytes;
  return {};
}

void Voyage::place() {
  const VersionKey key = manifest_.origin.key;
  const auto nodes = static_cast<std::uint8_t>(manifest_.level.losses() + 1);
  const std::uint8_t shards = manifest_.level.shards;
  const auto& stored = plan_->blocks.stored();
  const auto& left_out = plan_->blocks.left_out();
  Ledger& ledger = manifest_.ledger;
  ledger.written_bytes = 0;
  for (const std::uint32_t i : stored) {
    flight_->written[cargo_.unsafe[i].block] = true;
    ledger.written_bytes += cargo_.unsafe[i].bytes.size();
  }
  ledger.encoded_bytes = ledger.written_bytes;
  if (!plan_->blocks.natural().empty()) flight_->natural.resize(flight_->written.size());
  for (const std::uint32_t i : plan_->blocks.natural())
    flight_->natural[cargo_.unsafe[i].block] = true;
  for (const std::uint32_t i : left_out)
    ledger.duplicate_elsewhere_bytes += cargo_.unsafe[i].bytes.size();
  const Share& share = plan_->shares[manifest_.origin.rank];
  if (!stored.empty()) {
    SegmentRef& own = manifest_.segments[cargo_.own_segment];
    own.file_bytes = share.file_bytes;
    own.copies = static_cast<std::uint16_t>(share.parcels.size());
    own.nodes = nodes;
    own.shards = shards;
    ledger.file_bytes = share.file_bytes;
  }
  if (!left_out.empty()) {
    const SegmentRef elsewhere{.id = {key, kAnyRank}, .nodes = nodes};
    if (stored.empty()) {
      manifest_.segments[cargo_.own_segment] = elsewhere;
    } else {
      relabel(static_cast<std::uint8_t>(manifest_.segments.size()));
      manifest_.segments.push_back(elsewhere);
    }
  }
  keep_counting_on();
  for (const Rank rank : plan_->counted_on)
    manifest_.segments.push_back(
        {.id = {key, rank},
         .file_bytes = plan_->shares[rank].file_bytes,
         .copies = static_cast<std::uint16_t>(plan_->shares[rank].parcels.size()),
         .nodes = nodes,
         .shards = shards});
}

void Voyage::relabel(std::uint8_t elsewhere) {
  std::vector<dedup::Block> blocks;
  for (const std::uint32_t i : plan_->blocks.left_out()) blocks.push_back(blocks_[i]);
  std::sort(blocks.begin(), blocks.end(), dedup::Before{});
  for (const RegionRecord& region : manifest_.regions)
    for (std::uint64_t i = 0; i < manifest_.blocks_of(region); ++i) {
      const std::uint64_t block = region.first_block + i;
      const dedup::Block content{manifest_.fingerprints[block], manifest_.length_of(region, i)};
      if (manifest_.holders[block] == cargo_.own_segment &&
          std::binary_search(blocks.begin(), blocks.end(), content, dedup::Before{}))
        manifest_.holders[block] = elsewhere;
    }
}

/// Blocks that stay where they are may have copies in segments of other ranks.
void Voyage::keep_counting_on() {
  const std::size_t holding = manifest_.segments.size();
  for (const SegmentRef& other : cargo_.counted_on) {
    const auto held = std::span(manifest_.segments).first(holding);
    if (std::any_of(held.begin(), held.end(),
                    [&](const SegmentRef& ref) { return ref.id.key == other.id.key; }))
      manifest_.segments.push_back(other);
  }
}

std::vector<UnsafeBlock> Voyage::stored() const {
  std::vector<UnsafeBlock> blocks;
  for (const std::uint32_t i : plan_->in_order()) blocks.push_back(cargo_.unsafe[i]);
  return blocks;
}

Result<void> Voyage::exchange(Worker& worker) {
  BELAY_TRY(exchange_copies(worker));
  return manifest_.level.has_parity() ? exchange_shards(worker) : Result<void>{};
}

std::uint64_t Voyage::window_bytes() const {
  const Settings& settings = equipment_.settings;
  return std::max({kLeastWindowBytes, settings.staging_bytes.value_or(0) / kWindowsPerStaging,
                   std::uint64_t{4} * settings.block_bytes});
}

Result<void> Voyage::exchange_shards(Worker& worker) {
  ranks::Group& group = course_.group;
  BELAY_ASSIGN(const auto stripes,
               vote::agree_on(group, plan_stripes(course_.layout, manifest_.level,
                                                  manifest_.origin.key, plan_->shares)));
  if (stripes.empty()) return {};
  std::optional<SegmentImage> image;
  auto made = within_memory([&]() -> Result<StripeExchange> {
    if (!plan_->blocks.stored().empty()) {
      BELAY_ASSIGN(image,
                   SegmentImage::make({manifest_.origin, manifest_.hash, manifest_.block_bytes},
                                      *plan_, brought_));
    }
    return StripeExchange::make(group, stripes, image ? &*image : nullptr, window_bytes());
  });
  BELAY_ASSIGN(auto exchange, vote::agree_on(group, std::move(made)));
  flight_->expect_shards(
      std::make_unique<KeptShards>(equipment_, exchange.shards(manifest_.origin)));
  flight_->sent_bytes += exchange.sent_bytes();
  flight_->kept_bytes += exchange.kept_bytes();
  return exchange.run(
      course_.windows,
      [&](std::vector<KeptShards::Piece> pieces, std::atomic<bool>& done) {
        worker.submit(
            [flight = flight_, pieces = std::move(pieces), &done] { flight->keep(pieces, done); });
      },
      [&] { worker.wait_one(); });
}

Result<void> Voyage::exchange_copies(Worker& worker) {
  ranks::Group& group = course_.group;
  const CopyExchange exchange{group, course_.layout, *plan_, brought_};
  format::VectorSink encoded;
  BELAY_TRY(vote::agree(group, format::encode_manifest(manifest_, encoded)));
  BELAY_ASSIGN(auto sources, vote::agree_on(group, exchange.announce(encoded.bytes())));
  flight_->expect_copies(std::make_unique<KeptCopies>(
      equipment_, format::SegmentHeader{manifest_.origin, manifest_.hash, manifest_.block_bytes},
      sources));
  BELAY_ASSIGN(const auto rounds,
               dedup::Rounds::make(window_bytes(), equipment_.settings.block_bytes));
  return exchange.move_blocks(
      sources, rounds, course_.windows,
      [&](std::vector<KeptCopies::Arrival> arrivals, std::atomic<bool>& done) {
        worker.submit([flight = flight_, arrivals = std::move(arrivals), &done] {
          flight->keep(arrivals, done);
        });
      },
      [&] { worker.wait_one(); });
}

void Voyage::share() {
  const auto shared = within_memory([&]() -> Result<void> {
    const auto here = make_inline_worker();
    BELAY_TRY(plan());
    BELAY_TRY(exchange(*here));
    // Nobody leaves the group while others still wait for messages.
    std::uint64_t done = 1;
    return course_.group.reduce({&done, 1}, ranks::Reduction::min);
  });
  if (!shared) flight_->abandon(shared.error());
}

void Voyage::finish() {
  const bool stores = !flight_->failed() && plan_ && !plan_->blocks.stored().empty();
  const auto wrote = within_memory([&]() -> Result<void> {
    if (stores) flight_->write_held(stored(), *cargo_.scratch);
    return {};
  });
  if (!wrote) flight_->abandon(wrote.error());
  if (stores) return flight_->finish(cargo_.scratch);
  // Without a segment the vote takes its own memory, for which there must be room.
  equipment_.staging.release(cargo_.scratch);
  flight_->finish(nullptr);
}

}  // namespace belay::session
