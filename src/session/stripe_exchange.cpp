// SPDX-License-Identifier: Apache-2.0
#include "session/stripe_exchange.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/shard.hpp"
#include "format/wire.hpp"
#include "os/files.hpp"

#include <algorithm>

namespace belay::session {
namespace {

// Rows at distances of a power of two would compete for the same lines of the caches.
constexpr std::uint64_t kRowSkew = std::uint64_t{69} * 64;

}  // namespace

Result<StripeExchange> StripeExchange::make(ranks::Group& group,
                                            std::span<const PlannedStripe> stripes,
                                            const SegmentImage* image, std::uint64_t window_bytes) {
  BELAY_ASSIGN(auto code, redundancy::ErasureCode::make(stripes.front().layout.scheme()));
  StripeExchange exchange(group, stripes, image, std::move(code));
  exchange.count_slots();
  exchange.choose_piece(window_bytes);
  for (Kept& kept : exchange.kept_)
    for (auto& rows : kept.made) {
      BELAY_ASSIGN(rows, redundancy::SkewedRows::allocate(exchange.code_.scheme().shards,
                                                          exchange.piece_bytes_));
    }
  return exchange;
}

void StripeExchange::count_slots() {
  slots_.resize(group_.size());
  for (std::uint32_t stripe = 0; stripe < stripes_.size(); ++stripe)
    for (std::uint32_t seat = 0; seat < stripes_[stripe].stripe.seats(); ++seat) {
      const Rank keeper = stripes_[stripe].keepers[seat];
      slots_[keeper].push_back(stripe);
      if (keeper == group_.rank()) kept_.push_back({stripe, seat, {}});
    }
}

void StripeExchange::choose_piece(std::uint64_t window_bytes) {
  std::size_t most_slots = 1;
  for (const auto& slots : slots_) most_slots = std::max(most_slots, slots.size());
  std::uint64_t longest = 1;
  for (const PlannedStripe& planned : stripes_)
    for (std::uint32_t codeword = 0; codeword < planned.layout.nodes(); ++codeword)
      longest = std::max(longest, planned.layout.shard_bytes(codeword));
  const std::uint64_t fits = window_bytes / (most_slots * width());
  piece_bytes_ = std::max(std::min(fits / format::kShardUnit * format::kShardUnit,
                                   format::round_up(longest, format::kShardUnit)),
                          format::kShardUnit);
  rounds_ = (longest + piece_bytes_ - 1) / piece_bytes_;
  if (code_.scheme().shards > 1) ++rounds_;  // what the last made is handed on
}

std::uint32_t StripeExchange::seat_at(const Spot& spot) const {
  return (spot.codeword + spot.position) % stripes_[spot.stripe].stripe.seats();
}

std::uint32_t StripeExchange::codeword_at(std::uint32_t stripe, std::uint32_t seat,
                                          std::uint32_t position) const {
  const std::uint32_t seats = stripes_[stripe].stripe.seats();
  return (seat + seats - position) % seats;
}

Rank StripeExchange::encoder_of(const Spot& spot) const {
  return stripes_[spot.stripe].keepers[seat_at({spot.stripe, spot.codeword, members()})];
}

std::uint64_t StripeExchange::slot_bytes() const {
  const std::uint64_t handed_on = (code_.scheme().shards - 1) * piece_bytes_;
  return format::round_up(handed_on + members() * (piece_bytes_ + kRowSkew), os::kDirectAlignment);
}

std::uint64_t StripeExchange::row_offset(Rank keeper, const Spot& spot) const {
  const auto& slots = slots_[keeper];
  const auto slot = std::find(slots.begin(), slots.end(), spot.stripe) - slots.begin();
  const std::uint64_t base = static_cast<std::uint64_t>(slot) * slot_bytes();
  // Shards are written from where they arrive, so they come first, where pages begin.
  if (spot.position > members()) return base + (spot.position - members() - 1) * piece_bytes_;
  const std::uint64_t rows = base + (code_.scheme().shards - 1) * piece_bytes_;
  return rows + spot.position * (piece_bytes_ + kRowSkew);
}

std::uint64_t StripeExchange::share_of_round(std::uint64_t bytes, std::uint64_t round) const {
  const std::uint64_t before = round * piece_bytes_;
  return bytes <= before ? 0 : std::min(bytes - before, piece_bytes_);
}

std::vector<format::ShardDescription> StripeExchange::shards(Origin origin) const {
  origin.rank = 0;
  std::vector<format::ShardDescription> shards;
  for (const Kept& kept : kept_)
    for (std::uint32_t i = 0; i < code_.scheme().shards; ++i) {
      const auto& planned = stripes_[kept.stripe];
      const std::uint32_t codeword = codeword_at(kept.stripe, kept.seat, members() + i);
      shards.push_back(
          {origin, planned.stripe, kept.seat, i, planned.layout.shard_bytes(codeword), {}});
    }
  return shards;
}

std::uint64_t StripeExchange::sent_bytes() const {
  std::uint64_t bytes = image_ == nullptr ? 0 : image_->bytes();
  for (const Kept& kept : kept_)
    bytes += (code_.scheme().shards - 1) * stripes_[kept.stripe].layout.shard_bytes(
                                               codeword_at(kept.stripe, kept.seat, members()));
  return bytes;
}

std::uint64_t StripeExchange::kept_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& shard : shards({})) bytes += shard.parity_bytes;
  return bytes;
}

std::vector<ranks::Put> StripeExchange::puts(std::uint64_t round) const {
  std::vector<ranks::Put> puts;
  for (std::uint32_t s = 0; s < stripes_.size() && image_ != nullptr; ++s) {
    const auto& members_of = stripes_[s].stripe.members;
    for (std::uint32_t seat = 0; seat < members_of.size(); ++seat) {
      if (members_of[seat].rank != group_.rank()) continue;
      for (const auto& given : stripes_[s].layout.contributions(seat)) {
        const Spot spot{s, given.codeword, given.position};
        const std::uint64_t bytes = share_of_round(given.range.length, round);
        if (bytes == 0) continue;
        const Rank target = encoder_of(spot);
        puts.push_back({target, row_offset(target, spot),
                        image_->pieces(given.range.offset + round * piece_bytes_, bytes)});
      }
    }
  }
  if (round == 0) return puts;
  for (const Kept& kept : kept_) {
    const std::uint32_t codeword = codeword_at(kept.stripe, kept.seat, members());
    const auto& planned = stripes_[kept.stripe];
    const std::uint64_t bytes = share_of_round(planned.layout.shard_bytes(codeword), round - 1);
    if (bytes == 0) continue;
    for (std::uint32_t i = 1; i < code_.scheme().shards; ++i) {
      const Spot spot{kept.stripe, codeword, members() + i};
      const Rank target = planned.keepers[seat_at(spot)];
      const auto row = kept.made[(round - 1) % ExchangeWindows::kCount][i];
      puts.push_back({target, row_offset(target, spot), {row.first(bytes)}});
    }
  }
  return puts;
}

std::vector<ranks::Landing> StripeExchange::landings(std::uint64_t round) const {
  std::vector<ranks::Landing> landings;
  for (const Kept& kept : kept_) {
    const auto& planned = stripes_[kept.stripe];
    const std::uint32_t codeword = codeword_at(kept.stripe, kept.seat, members());
    for (std::uint32_t position = 0; position < members(); ++position) {
      const Spot spot{kept.stripe, codeword, position};
      const std::uint64_t bytes =
          share_of_round(planned.layout.range_at(codeword, position).length, round);
      if (bytes > 0)
        landings.push_back(
            {planned.stripe.members[seat_at(spot)].rank, row_offset(group_.rank(), spot), bytes});
    }
    for (std::uint32_t i = 1; i < code_.scheme().shards && round > 0; ++i) {
      const Spot spot{kept.stripe, codeword_at(kept.stripe, kept.seat, members() + i),
                      members() + i};
      const std::uint64_t bytes =
          share_of_round(planned.layout.shard_bytes(spot.codeword), round - 1);
      if (bytes > 0) landings.push_back({encoder_of(spot), row_offset(group_.rank(), spot), bytes});
    }
  }
  return landings;
}

void StripeExchange::encode(std::uint64_t round, std::span<std::byte> window) {
  for (Kept& kept : kept_) {
    const auto& layout = stripes_[kept.stripe].layout;
    const std::uint32_t codeword = codeword_at(kept.stripe, kept.seat, members());
    const std::uint64_t bytes = share_of_round(layout.shard_bytes(codeword), round);
    if (bytes == 0) continue;
    std::vector<redundancy::Bytes> given;
    for (std::uint32_t position = 0; position < members(); ++position)
      given.push_back(
          window.subspan(row_offset(group_.rank(), {kept.stripe, codeword, position}),
                         share_of_round(layout.range_at(codeword, position).length, round)));
    if (planted(Mistake::wrong_parity)) given.back() = given.back().first(given.back().size() / 2);
    std::vector<redundancy::MutableBytes> made;
    for (std::uint32_t i = 0; i < code_.scheme().shards; ++i)
      made.push_back(kept.made[round % ExchangeWindows::kCount][i].first(bytes));
    code_.encode(given, made);
  }
}

std::vector<KeptShards::Piece> StripeExchange::pieces(std::uint64_t round,
                                                      std::span<std::byte> window) {
  std::vector<KeptShards::Piece> pieces;
  const std::uint32_t shards = code_.scheme().shards;
  for (std::size_t slot = 0; slot < kept_.size(); ++slot) {
    Kept& kept = kept_[slot];
    const auto& layout = stripes_[kept.stripe].layout;
    for (std::uint32_t i = 0; i < shards; ++i) {
      const std::uint32_t codeword = codeword_at(kept.stripe, kept.seat, members() + i);
      if (i > 0 && round == 0) continue;
      const std::uint64_t bytes =
          share_of_round(layout.shard_bytes(codeword), i == 0 ? round : round - 1);
      if (bytes == 0) continue;
      const auto row =
          i == 0 ? kept.made[round % ExchangeWindows::kCount][0]
                 : window.subspan(row_offset(group_.rank(), {kept.stripe, codeword, members() + i}),
                                  bytes);
      pieces.push_back({slot * shards + i, row.first(bytes)});
    }
  }
  return pieces;
}

Result<void> StripeExchange::run(ExchangeWindows& windows, const Made& made,
                                 const std::function<void()>& wait) {
  std::vector<std::uint64_t> needed;
  for (const auto& slots : slots_) needed.push_back(slots.size() * slot_bytes());
  BELAY_TRY(windows.provide(group_, needed));
  std::array<std::atomic<bool>, ExchangeWindows::kCount> is_free{true, true};
  Result<void> moved;
  for (std::uint64_t round = 0; round < rounds_ && moved; ++round) {
    const std::size_t turn = round % ExchangeWindows::kCount;
    while (!is_free[turn].load(std::memory_order_acquire)) wait();
    ranks::Window& window = windows.window(turn);
    moved = window.put(puts(round), landings(round));
    if (!moved) break;
    encode(round, window.bytes());
    auto ready = pieces(round, window.bytes());
    if (ready.empty()) continue;
    is_free[turn].store(false, std::memory_order_release);
    made(std::move(ready), is_free[turn]);
  }
  for (const auto& free : is_free)
    while (!free.load(std::memory_order_acquire)) wait();
  return moved;
}

}  // namespace belay::session
