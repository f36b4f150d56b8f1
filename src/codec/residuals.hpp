// SPDX-License-Identifier: Apache-2.0
// Numbers as differences from those before them.
#pragma once

#include "codec/kernels.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

inline constexpr std::size_t kMostStrides = 4;
/// Of residuals that go from one loop to the next within the first cache.
inline constexpr std::size_t kTileBytes = 16 << 10;

/// Which differences: for each stride in turn, x[i] - x[i - stride], where numbers before the
/// first are 0. The same stride twice gives differences of differences; those of an element, a row
/// and a plane give what the Lorenzo predictor leaves of a field. What remains is folded, so that
/// differences next to 0 begin with bytes that are 0, whatever their sign.
struct Differences {
  std::uint32_t number_bytes = 0;  ///< 1, 2, 4 or 8
  bool big_endian = false;
  std::uint32_t strides = 0;
  std::array<std::uint64_t, kMostStrides> stride{};  ///< in numbers, ascending

  bool operator==(const Differences&) const = default;
};

/// From numbers to residuals and back, piece by piece, in order.
class Residuals {
 public:
  Residuals(const Differences& differences, const Kernels& kernels);

  /// The residuals of numbers [first, first + count) of `raw`. REQUIRES: room for them at `to`.
  void take(const std::byte* raw, std::uint64_t first, std::size_t count, std::byte* to) const;
  /// Turns residuals [first, first + count), which lie in their place in `raw`, into numbers.
  /// REQUIRES: those before are numbers already. All are in the machine's order of bytes.
  void put_back(std::byte* raw, std::uint64_t first, std::size_t count) const;

 private:
  struct Term {
    std::uint64_t back = 0;
    bool plus = true;
  };

  std::span<const Term> terms_from(std::size_t stride) const;

  const Differences& differences_;
  const Kernels::Numbers& numbers_;
  std::array<Term, 1 << kMostStrides> terms_;
};

}  // namespace belay::codec
