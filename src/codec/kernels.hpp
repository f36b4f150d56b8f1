// SPDX-License-Identifier: Apache-2.0
// The inner loops of the transforms, in the best form for this processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// Pointers need no alignment. Numbers are unsigned and wrap.
struct Kernels {
  static constexpr std::size_t kBitsRoom = 16;

  /// Byte b of record r goes to to[b * plane + r]. REQUIRES: no overlap, plane >= records.
  void (*shuffle)(std::size_t record, std::size_t records, const std::byte* from, std::size_t plane,
                  std::byte* to);
  /// The inverse: byte b of record r comes from from[b * plane + r].
  void (*unshuffle)(std::size_t record, std::size_t records, const std::byte* from,
                    std::size_t plane, std::byte* to);

  /// Of numbers of one width.
  struct Numbers {
    /// to[i] += from[i]. May overlap only if they are the same, or `to` begins after `from` ends.
    void (*add)(std::size_t numbers, const std::byte* from, std::byte* to);
    void (*subtract)(std::size_t numbers, const std::byte* from, std::byte* to);
    /// The same, of numbers whose bytes are the other way round in `from`.
    void (*add_swapped)(std::size_t numbers, const std::byte* from, std::byte* to);
    void (*subtract_swapped)(std::size_t numbers, const std::byte* from, std::byte* to);
    /// to[i] += to[i - stride], in order, for all i from `stride` on. REQUIRES: stride > 0.
    void (*accumulate)(std::size_t numbers, std::size_t stride, std::byte* to);
    /// As signed numbers 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
    void (*fold)(std::size_t numbers, std::byte* to);
    void (*unfold)(std::size_t numbers, std::byte* to);
    void (*swap)(std::size_t numbers, std::byte* to);
    /// leads[i] becomes the lead of number i, and the bits below it follow the `filled` ones in
    /// `bits`, the lowest first: of a number of n > 2 bits the lowest n - 2, and with n - 2 = e its
    /// lead is 2e + (number >> e); less than 4 are their own lead. How many bits are filled then.
    /// REQUIRES: kBitsRoom after the last.
    std::uint64_t (*pack)(std::size_t numbers, const std::byte* from, std::byte* leads,
                          std::byte* bits, std::uint64_t filled);
    /// The inverse, from the bits after the `taken` ones. How many are taken then. REQUIRES: leads
    /// as pack() makes them, and that many bits.
    std::uint64_t (*unpack)(std::size_t numbers, const std::byte* leads,
                            std::span<const std::byte> bits, std::uint64_t taken, std::byte* to);
  };
  std::array<Numbers, 4> numbers;  ///< of 1, 2, 4 and 8 bytes

  /// REQUIRES: bytes is 1, 2, 4 or 8.
  const Numbers& of(std::size_t bytes) const {
    return numbers[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
  }
};

/// Plain loops, for any processor: what the others must agree with.
const Kernels& plain_kernels();
/// The best that this processor can run.
const Kernels& best_kernels();

}  // namespace belay::codec
