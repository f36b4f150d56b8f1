// SPDX-License-Identifier: Apache-2.0
// Ranks that are played by few processes: each of these, a head, plays several ranks on threads of
// its own, and only the thread that runs the hub talks to the other heads. So one thread of a head
// calls MPI, whatever the number of ranks.
//
// It goes in steps. When each rank of a head has called its group, or returned, the head takes part
// in a step: heads tell each other what their ranks have called since, and messages travel. Then
// what can be answered is answered.
#pragma once

#include <belay/result.hpp>

#include "comm/group.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace belay::ranks {

class HubGroup;

/// One head's end of the hub.
class Hub {
 public:
  /// `heads` are the heads, and must outlive the hub; `crews` has the ranks that each of them
  /// plays: every rank once. A rank that keeps others waiting for `timeout_ns` is lost.
  Hub(Group& heads, std::vector<std::vector<Rank>> crews, std::uint64_t timeout_ns);
  ~Hub();

  /// Collective over the heads. Calls `play` for each rank of this head, on a thread of its own,
  /// and returns when those of all heads have returned. What plays do besides calling their groups
  /// keeps all others waiting. After an error, which the groups have had too, the hub is broken for
  /// good.
  Result<void> run(const std::function<void(Group& group)>& play);

  /// Of a rank of this head; called in run() only. It cannot be duplicated.
  Group& group(Rank rank);

 private:
  friend class HubGroup;
  using Bytes = std::vector<std::byte>;
  enum class Kind : std::uint8_t { none, reduce, gather, broadcast, close };

  /// What a rank has called, and not been answered.
  struct Call {
    Kind kind = Kind::none;
    std::uint64_t detail = 0;  ///< what must be the same on all ranks
    Bytes bytes;
    bool operator==(const Call& other) const {
      return kind == other.kind && detail == other.detail;
    }
  };
  /// A rank of this head.
  struct Seat {
    enum class State { away, playing, waiting } state = State::away;
    Call call;                                ///< a collective, or
    std::vector<std::pair<Rank, Bytes>> out;  ///< messages
    std::vector<Rank> from;
    std::optional<Error> refused;
    std::vector<Bytes> answer;
  };

  // Called by ranks.
  Result<std::vector<Bytes>> ask(Rank rank, Call call);
  Result<std::vector<Bytes>> exchange(Rank rank, std::span<const Message> out,
                                      std::span<const Rank> from);
  Result<std::vector<Bytes>> wait_for_answer(std::unique_lock<std::mutex>& lock, Seat& seat);

  // Called by the thread that runs.
  Result<void> carry();
  Result<void> wait_for_ranks(std::unique_lock<std::mutex>& lock);
  /// True: there is nothing left to do, on any head.
  Result<bool> step(std::unique_lock<std::mutex>& lock);
  Bytes describe(std::vector<Bytes>& parcels);
  Result<void> pass_parcels(const std::vector<Bytes>& news, const std::vector<Bytes>& parcels);
  Result<void> deposit(std::span<const std::byte> parcel);
  void answer_messages();
  void answer_collective();
  void release(Seat& seat);
  void break_off(const Error& error);

  Group& heads_;
  const std::vector<std::vector<Rank>> crews_;
  const std::uint64_t timeout_ns_;
  Rank size_ = 0;
  std::vector<Rank> head_of_;  ///< by rank
  std::map<Rank, std::unique_ptr<HubGroup>> groups_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Rank, Seat> seats_;
  std::vector<Call> calls_;  ///< collectives that all heads know of, by rank
  std::map<std::pair<Rank, Rank>, std::vector<Bytes>> messages_;  ///< for this head's ranks
  std::uint64_t answered_ = 0;
  std::optional<Error> broken_;
};

}  // namespace belay::ranks
