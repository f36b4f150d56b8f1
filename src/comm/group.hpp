// SPDX-License-Identifier: Apache-2.0
// The ranks of a job, and the few things that they say to each other. (The namespace is `ranks`:
// belay::comm is a function of the public API.)
//
// Implementations: SoloGroup, ThreadGroup (tests), MpiGroup; the simulator has its own. All pass
// tests/conformance/group_conformance.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "comm/window.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace belay::ranks {

enum class Reduction { min, max, sum, bit_or };

inline std::uint64_t combine(std::uint64_t a, std::uint64_t b, Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return std::min(a, b);
    case Reduction::max:
      return std::max(a, b);
    case Reduction::sum:
      return a + b;
    case Reduction::bit_or:
      return a | b;
  }
  return a;
}

/// Bytes for one rank.
struct Message {
  Rank peer = 0;
  std::span<const std::byte> bytes;
};

/// Collectives are called by all ranks in the same order, by one thread at a time. Each ends within
/// the deadline set at construction, which starts anew whenever a message or put gets on: whoever
/// is slow but not silent is not lost. Past it the group is broken for good: this and every further
/// call returns peer_lost at once, and so do its windows. Destructors never communicate.
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

  /// Sends each of `out` and receives one message from each of `from`, in that order. Ranks without
  /// messages need not call; those who call may have to wait until their peers receive. At most one
  /// message from a rank to another in a call; messages between a pair arrive in the order of
  /// calls. A message to oneself is received by the same call. invalid_argument, and nothing is
  /// sent: a rank that does not exist, one that is named twice, oneself in only one of the lists.
  virtual Result<std::vector<std::vector<std::byte>>> exchange(std::span<const Message> out,
                                                               std::span<const Rank> from) = 0;

  /// Collective. Sizes may differ between ranks, and be 0. The memory is page-aligned, so that
  /// direct I/O can write from it. no_space, on all ranks: one of them has no memory for it.
  virtual Result<std::unique_ptr<Window>> open_window(std::uint64_t bytes) = 0;

  /// Collective: a second group over the same ranks, which another thread may use at the same time.
  /// Neither needs the other to live, or to be whole. unsupported, on all ranks: MPI was not
  /// initialized with MPI_THREAD_MULTIPLE everywhere.
  virtual Result<std::unique_ptr<Group>> duplicate() = 0;

  /// Collective: a group of `members`, in that order, of which this rank is one; each rank is in
  /// one of the lists that ranks pass, and all members pass the same. The new group needs the old
  /// one as little as a duplicate does, and is used by the same thread. unsupported, on all ranks:
  /// not every group can be divided.
  virtual Result<std::unique_ptr<Group>> subset(std::span<const Rank> members) {
    static_cast<void>(members);
    return Unexpected(Error(Code::unsupported, "this group cannot be divided"));
  }

  /// Collective: gives back what the group holds. Called once, last.
  virtual Result<void> close() { return {}; }
};

std::unique_ptr<Group> make_solo_group();

/// `size` groups, one for each thread that plays a rank.
std::vector<std::unique_ptr<Group>> make_thread_groups(Rank size, std::uint64_t timeout_ns);

}  // namespace belay::ranks
