// SPDX-License-Identifier: Apache-2.0
// Makes the shards of a version. Members give their chunks to the node that keeps the first shard
// of a codeword; that one computes all of them and hands the others on. In rounds, through windows
// of bounded size.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"
#include "redundancy/erasure_code.hpp"
#include "redundancy/skewed_rows.hpp"
#include "session/copy_exchange.hpp"
#include "session/kept_shards.hpp"
#include "session/segment_image.hpp"
#include "session/stripe_plan.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace belay::session {

class StripeExchange {
 public:
  /// All ranks pass the same stripes and budget. `image` is nullptr if this rank stores nothing.
  /// References are kept.
  static Result<StripeExchange> make(ranks::Group& group, std::span<const PlannedStripe> stripes,
                                     const SegmentImage* image, std::uint64_t window_bytes);

  /// What this rank will keep; `origin` is that of its manifest.
  std::vector<format::ShardDescription> shards(Origin origin) const;

  /// That this rank gives to others, and of parity that it keeps.
  std::uint64_t sent_bytes() const;
  std::uint64_t kept_bytes() const;

  /// What is done with pieces of shards: `done` is set when their memory is free.
  using Made = std::function<void(std::vector<KeptShards::Piece>, std::atomic<bool>& done)>;
  /// Collective. `wait` is called while memory is not free.
  Result<void> run(ExchangeWindows& windows, const Made& made, const std::function<void()>& wait);

 private:
  /// A stripe of which this rank keeps shards.
  struct Kept {
    std::uint32_t stripe = 0;
    std::uint32_t seat = 0;
    std::array<redundancy::SkewedRows, ExchangeWindows::kCount> made;  ///< its codeword's shards
  };
  /// Where in a codeword, and in which stripe.
  struct Spot {
    std::uint32_t stripe = 0;
    std::uint32_t codeword = 0;
    std::uint32_t position = 0;
  };

  StripeExchange(ranks::Group& group, std::span<const PlannedStripe> stripes,
                 const SegmentImage* image, redundancy::ErasureCode code)
      : group_(group), stripes_(stripes), image_(image), code_(std::move(code)) {}

  void choose_piece(std::uint64_t window_bytes);
  void count_slots();
  std::uint32_t members() const { return code_.scheme().members; }
  std::uint32_t width() const { return code_.scheme().width(); }
  std::uint32_t seat_at(const Spot& spot) const;
  /// The codeword that has this position at a seat.
  std::uint32_t codeword_at(std::uint32_t stripe, std::uint32_t seat, std::uint32_t position) const;
  Rank encoder_of(const Spot& spot) const;
  std::uint64_t slot_bytes() const;
  /// In the window of whoever gets it.
  std::uint64_t row_offset(Rank keeper, const Spot& spot) const;
  /// So much of a string of `bytes` moves in a round.
  std::uint64_t share_of_round(std::uint64_t bytes, std::uint64_t round) const;

  std::vector<ranks::Put> puts(std::uint64_t round) const;
  std::vector<ranks::Landing> landings(std::uint64_t round) const;
  void encode(std::uint64_t round, std::span<std::byte> window);
  std::vector<KeptShards::Piece> pieces(std::uint64_t round, std::span<std::byte> window);

  ranks::Group& group_;
  std::span<const PlannedStripe> stripes_;
  const SegmentImage* image_;
  redundancy::ErasureCode code_;
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t rounds_ = 0;
  std::vector<std::vector<std::uint32_t>> slots_;  ///< by rank: the stripes that it keeps shards of
  std::vector<Kept> kept_;
};

}  // namespace belay::session
