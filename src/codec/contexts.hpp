// SPDX-License-Identifier: Apache-2.0
// Numbers as what is new in them to somebody who remembers: after a difference like this one, which
// came next the last time? docs/format.md, "Contexts".
#pragma once

#include "codec/residuals.hpp"
#include "codec/workspace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// From numbers to residuals or back, piece by piece, in order: it remembers, so that one object
/// goes through an extent once. As Residuals otherwise.
class Contexts {
 public:
  /// REQUIRES: one stride, and so many numbers in all.
  Contexts(const Differences& differences, std::uint64_t numbers, Workspace& workspace);

  void take(const std::byte* raw, std::uint64_t first, std::size_t count, std::byte* to);
  void put_back(std::byte* raw, std::uint64_t first, std::size_t count);

 private:
  const Differences& differences_;
  const unsigned table_bits_;
  std::byte* const table_;  ///< of differences, by context
};

}  // namespace belay::codec
