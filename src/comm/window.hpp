// SPDX-License-Identifier: Apache-2.0
// Memory that other ranks write into, in rounds.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::ranks {

/// Bytes for the window of one rank, oneself included. The pieces lie one behind the other there.
struct Put {
  Rank target = 0;
  std::uint64_t offset = 0;
  std::vector<std::span<const std::byte>> pieces;
};

/// What a rank, oneself included, puts into this rank's window in the same round: one for each put.
struct Landing {
  Rank source = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// Memory of this rank that others write into. Made by Group::open_window(). Called by the thread
/// that calls the group, while the group lives; only the destructor may come later.
class Window {
 public:
  /// Never communicates.
  virtual ~Window() = default;
  virtual std::span<std::byte> bytes() = 0;

  /// Collective. When it returns, everybody's puts of this round have landed in everybody's
  /// windows. What the round before brought must have been used up before the call. `landings` is
  /// exactly what the others' puts to this rank are, in any order; no two of a round overlap. The
  /// pieces are read during the call only. invalid_argument, on all ranks, and nothing is put: a
  /// rank put beyond a window, named a rank that does not exist, or expects a landing outside of
  /// its own. Landings that disagree with puts are a mistake that may go unnoticed, or cost the
  /// deadline.
  virtual Result<void> put(std::span<const Put> puts, std::span<const Landing> landings) = 0;

  /// Collective: gives the memory back. Called once, last.
  virtual Result<void> close() = 0;
};

}  // namespace belay::ranks
