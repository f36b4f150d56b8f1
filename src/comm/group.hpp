// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, and the few things that they say to each other. (The namespace is `ranks`:
// belay::comm is a function of the public API.)
//
// Implementations: SoloGroup, ThreadGroup (tests), MpiGroup; the simulator has its own. All pass
// tests/conformance/group_conformance.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace belay::ranks {

enum class Reduction { min, max, sum, bit_or };

/// Collectives are called by all ranks in the same order, by one thread at a time. Each ends within
/// the deadline set at construction; past it the group is broken for good: this and every further
/// call returns peer_lost at once. Destructors never communicate.
class Group {
 public:
  virtual ~Group() = default;
  virtual Rank rank() const = 0;
  virtual Rank size() const = 0;

  /// Element-wise over all ranks; every rank gets the result in place. All pass the same length.
  virtual Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) = 0;
  /// Every rank's bytes, by rank. Lengths may differ.
  virtual Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) = 0;
  /// Root's bytes to all. All pass the same length.
  virtual Result<void> broadcast(std::span<std::byte> bytes, Rank root) = 0;
  /// Collective: gives back what the group holds. Called once, last.
  virtual Result<void> close() { return {}; }
};

std::unique_ptr<Group> make_solo_group();

/// `size` groups, one for each thread that plays a rank.
std::vector<std::unique_ptr<Group>> make_thread_groups(Rank size, std::uint64_t timeout_ns);

}  // namespace belay::ranks
