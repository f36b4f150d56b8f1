// SPDX-License-Identifier: Apache-2.0
// Where the threads of one thread group meet, and leave messages for each other.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace belay::ranks {

/// What a rank asks for. The ranks are in step iff all calls of a round are equal.
struct Call {
  enum class Kind { reduce, gather, broadcast, duplicate, subset, close };

  Kind kind = Kind::close;
  std::uint64_t length = 0;  ///< where all ranks must pass the same
  Reduction reduction = Reduction::min;
  Rank root = 0;
  bool operator==(const Call&) const = default;
};

/// Shared by the groups of all ranks, and safe. Every wait ends at the deadline, when a rank
/// leaves, or when another rank's deadline has passed.
class Meeting {
 public:
  using Bytes = std::vector<std::byte>;

  /// One collective.
  struct Round {
    explicit Round(Rank size) : calls(size), contributions(size) {}

    std::vector<std::optional<Call>> calls;  ///< by rank; empty: has not arrived
    std::vector<Bytes> contributions;
    std::shared_ptr<Meeting> duplicate;                 ///< of a round that asks for one
    std::map<Bytes, std::shared_ptr<Meeting>> subsets;  ///< by what their ranks brought
    Rank arrived = 0;
    bool complete = false;  ///< nothing changes any more, so that ranks read without the lock
    std::optional<Error> failure;
  };

  Meeting(Rank size, std::uint64_t timeout_ns);

  Rank size() const { return size_; }
  /// Waits for all ranks and returns what each brought.
  Result<std::shared_ptr<const Round>> meet(Rank rank, const Call& call, Bytes mine);
  /// Leaves the messages, then waits for one from each of `from`.
  Result<std::vector<Bytes>> exchange(Rank rank, std::span<const Message> out,
                                      std::span<const Rank> from);
  void leave(Rank rank);

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Deadline deadline() const;
  void finish(Round& round);
  void break_group(const std::string& reason);
  /// Waits for the next message from one rank to another. REQUIRES: `lock` is held.
  Result<Bytes> take_message(std::unique_lock<std::mutex>& lock, Rank from, Rank to,
                             Deadline deadline);

  const Rank size_;
  const std::uint64_t timeout_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Each round has an object of its own, so that a rank that wakes late still finds the outcome of
  // its round when others are in the next, or have broken the group since.
  std::shared_ptr<Round> round_;
  std::map<std::pair<Rank, Rank>, std::deque<Bytes>> messages_;  ///< by sender and receiver
  std::optional<Error> broken_;
};

}  // namespace belay::ranks
