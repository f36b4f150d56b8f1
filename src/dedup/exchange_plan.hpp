// SPDX-License-Identifier: Apache-2.0
// Where in a receiver's windows the bytes of each sender go.
//
// 1. Each rank tells every receiver how many bytes it will send (ReplicationPlan::Send::bytes, an
//    all-to-all of counts), and each receiver answers with the sender's offset in its *stream*: all
//    that it receives, one sender after the other, no gap (plan_stream).
// 2. A stream may be larger than memory. Rounds cut it: round r takes the blocks that begin in
//    [r * stride, (r + 1) * stride) of the stream, whole, and each byte at its distance from the
//    beginning of that range. One window, opened once, serves all rounds; each sender finds round
//    and place by itself, and no block is in two rounds (plan_puts).
//
// In window coordinates a round begins where the last block of the round before would end, so the
// first bytes of a window, fewer than a block, may be unused; what is filled has no gap.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "dedup/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::dedup {

/// What one rank receives.
struct Stream {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> offsets;  ///< by sender; of those that send nothing without meaning
};

/// The stream of `rank`, given what each rank sends to it. Senders come in the order of the ring,
/// going back from the receiver: when all send to their K-1 successors only, that is the order of
/// the paper's Algorithm 3.
Stream plan_stream(std::span<const std::uint64_t> bytes_from, const Ring& ring, Rank rank);

/// How streams are cut. The same on all ranks.
class Rounds {
 public:
  /// `window_bytes`: the most that a window may have. `max_block_bytes`: no block that is sent is
  /// longer (with its header, if the sender packs one). invalid_argument: a block does not fit.
  static Result<Rounds> make(std::uint64_t window_bytes, std::uint64_t max_block_bytes);

  /// Rounds of a stream; of all streams the maximum counts. The last may be empty.
  std::uint64_t count(std::uint64_t stream_bytes) const {
    return stream_bytes / stride_ + (stream_bytes % stride_ != 0 ? 1 : 0);
  }
  /// The size of the window that a stream needs.
  std::uint64_t window_bytes(std::uint64_t stream_bytes) const {
    return stream_bytes < window_bytes_ ? stream_bytes : window_bytes_;
  }
  std::uint64_t stride() const { return stride_; }

 private:
  Rounds(std::uint64_t window_bytes, std::uint64_t stride)
      : window_bytes_(window_bytes), stride_(stride) {}

  std::uint64_t window_bytes_;
  std::uint64_t stride_;
};

/// Blocks of one sender that lie one behind the other in one round's window.
struct Put {
  std::uint64_t round = 0;
  std::uint64_t offset = 0;  ///< in the window
  std::uint64_t bytes = 0;
  std::size_t first_block = 0;  ///< of those that go to this receiver
  std::size_t blocks = 0;
  bool operator==(const Put&) const = default;
};

/// The puts of blocks with these lengths whose stream begins at `offset`, by rising round. The
/// receiver, told the lengths, finds the same.
std::vector<Put> plan_puts(std::uint64_t offset, std::span<const std::uint32_t> lengths,
                           const Rounds& rounds);

}  // namespace belay::dedup
