// SPDX-License-Identifier: Apache-2.0
// The shards of one version that a rank keeps.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "format/shard.hpp"
#include "os/memory.hpp"
#include "session/equipment.hpp"
#include "store/file_writer.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace belay::session {

/// Jobs of a flight, one after the other on the worker.
class KeptShards {
 public:
  /// `shards` say all but the checksums.
  KeptShards(Equipment& equipment, std::vector<format::ShardDescription> shards);

  /// A piece of the parity of one shard, from its front on.
  struct Piece {
    std::size_t shard = 0;
    std::span<const std::byte> bytes;
  };
  /// REQUIRES: page-aligned memory; of each shard all pieces but the last are whole units.
  Result<void> write(const Piece& piece);
  /// Everything was written: makes it durable.
  Result<void> finish();
  /// Removes all of it. Nothing more will be written.
  void clear_away();

  std::vector<SegmentId> ids() const;
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Shard {
    format::ShardDescription description;
    std::optional<store::FileWriter> writer = {};
    os::AlignedMemory buffer = {};
  };

  static SegmentId id_of(const Shard& shard) {
    const Stripe& stripe = shard.description.stripe;
    return shard_id(stripe.key, stripe.number, shard.description.index);
  }
  Result<void> start(Shard& shard);

  Equipment& equipment_;
  std::vector<Shard> shards_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace belay::session
