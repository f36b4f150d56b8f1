// SPDX-License-Identifier: Apache-2.0
// The memory behind an MPI window: shared with neighbours, or this rank's alone.
#pragma once

#include <belay/result.hpp>

#include "comm/mpi_window.hpp"
#include "os/memory.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace belay::ranks {

/// Destroyed without free() it communicates with nobody: what is shared is then left to MPI, and
/// what was given up to the system, until the process ends.
class WindowMemory {
 public:
  /// Collective between neighbours, who must all know that there is room: else some of them wait
  /// for ever, as MPI has it. Sizes may differ.
  static Result<WindowMemory> allocate(const Neighbours& neighbours, std::uint64_t bytes);

  std::span<std::byte> bytes() { return bytes_; }
  /// From where this rank's memory begins, for MPI, to the first of bytes(): that is page-aligned.
  std::uint64_t skipped_bytes() const { return skipped_bytes_; }
  /// Where bytes() of a neighbour begin in the memory of this process; `neighbour` is its rank
  /// among them, `skipped` its skipped_bytes(). Null: it is not shared.
  Result<std::byte*> place_of(int neighbour, std::uint64_t skipped) const;
  /// Before and after neighbours meet: what they wrote before is seen after.
  Result<void> sync();
  /// Collective between neighbours.
  Result<void> free();
  /// MPI may write there at any time from now on.
  void give_up() { static_cast<void>(alone_.release()); }

 private:
  std::span<std::byte> bytes_;
  std::uint64_t skipped_bytes_ = 0;
  MPI_Win shared_ = MPI_WIN_NULL;
  std::unique_ptr<os::AlignedMemory> alone_;
};

/// no_space if this host has too little memory of the kind that MPI shares for windows of these
/// sizes, by rank of the link.
Result<void> check_room(const Neighbours& neighbours, const std::vector<std::uint64_t>& windows);

}  // namespace belay::ranks
