// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/group.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace belay::ranks {
namespace {

using Bytes = std::vector<std::byte>;
using Contributions = std::shared_ptr<const std::vector<Bytes>>;

enum class Kind { reduce, gather, broadcast, close };

/// What a rank asks for. The ranks are in step iff all calls of a round are equal.
struct Call {
  Kind kind = Kind::close;
  std::uint64_t length = 0;  ///< where all ranks must pass the same
  Reduction reduction = Reduction::min;
  Rank root = 0;
  bool operator==(const Call&) const = default;
};

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return "min";
    case Reduction::max:
      return "max";
    case Reduction::sum:
      return "sum";
    case Reduction::bit_or:
      return "bit_or";
  }
  return "unknown";
}

std::string describe(const Call& call) {
  switch (call.kind) {
    case Kind::reduce:
      return fmt::format("reduce({}) of {} values", name_of(call.reduction), call.length);
    case Kind::gather:
      return "gather";
    case Kind::broadcast:
      return fmt::format("broadcast of {} bytes from rank {}", call.length, call.root);
    case Kind::close:
      return "close";
  }
  return "unknown";
}

std::uint64_t combine(std::uint64_t a, std::uint64_t b, Reduction reduction) {
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

/// One collective. Each has an object of its own, so that a rank that wakes late still finds the
/// outcome of its round when others are in the next, or have broken the group since.
struct Round {
  explicit Round(Rank size) : calls(size), contributions(size) {}

  std::vector<std::optional<Call>> calls;  ///< by rank; empty: has not arrived
  std::vector<Bytes> contributions;
  Rank arrived = 0;
  bool complete = false;  ///< nothing changes any more, so that ranks read without the lock
  std::optional<Error> failure;
};

/// Why the ranks of a complete round cannot be served.
std::optional<Error> judge(const Round& round) {
  const Call& first = *round.calls[0];
  for (Rank rank = 1; rank < round.calls.size(); ++rank)
    if (const Call& other = *round.calls[rank]; other != first)
      return Error(Code::invalid_argument,
                   fmt::format("ranks are out of step: rank 0 called {}, rank {} called {}; all "
                               "ranks must make the same calls in the same order",
                               describe(first), rank, describe(other)));
  if (first.root >= round.calls.size())
    return Error(Code::invalid_argument,
                 fmt::format("{}: the group has {} ranks", describe(first), round.calls.size()));
  return {};
}

std::string absent_ranks(const Round& round) {
  std::string absent;
  for (Rank rank = 0; rank < round.calls.size(); ++rank)
    if (!round.calls[rank]) absent += fmt::format("{}{}", absent.empty() ? "" : ", ", rank);
  return absent;
}

/// Where the ranks of one group meet.
class Meeting {
 public:
  Meeting(Rank size, std::uint64_t timeout_ns)
      : size_(size), timeout_ns_(timeout_ns), round_(std::make_shared<Round>(size)) {}

  Rank size() const { return size_; }

  /// Waits for all ranks and returns what each brought.
  Result<Contributions> exchange(Rank rank, const Call& call, Bytes mine) {
    const auto deadline = std::chrono::steady_clock::now() + timeout();
    std::unique_lock lock(mutex_);
    if (broken_) return Unexpected(broken_->within(describe(call)));
    const std::shared_ptr<Round> round = round_;
    round->calls[rank] = call;
    round->contributions[rank] = std::move(mine);
    if (++round->arrived == size_) {
      finish(*round);
    } else {
      changed_.wait_until(lock, deadline, [&] { return round->complete || broken_; });
      if (!round->complete) {
        if (!broken_) break_group(late(*round));
        return Unexpected(broken_->within(describe(call)));
      }
    }
    if (round->failure) return Unexpected(*round->failure);
    return Contributions(round, &round->contributions);
  }

  void leave(Rank rank) {
    const std::scoped_lock lock(mutex_);
    if (!broken_) break_group(fmt::format("rank {} has left the group", rank));
  }

 private:
  std::chrono::nanoseconds timeout() const {
    // Half of the clock's range, so that adding it to any time of this machine cannot overflow.
    constexpr std::uint64_t kLongest = std::numeric_limits<std::int64_t>::max() / 2;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(timeout_ns_, kLongest)));
  }

  std::string late(const Round& round) const {
    return fmt::format("no answer from rank {} within {} ms", absent_ranks(round),
                       timeout_ns_ / 1000000);
  }

  void finish(Round& round) {
    round.failure = judge(round);
    round.complete = true;
    round_ = std::make_shared<Round>(size_);
    changed_.notify_all();
  }

  void break_group(const std::string& reason) {
    broken_ = Error(Code::peer_lost, reason);
    changed_.notify_all();
  }

  const Rank size_;
  const std::uint64_t timeout_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Round> round_;
  std::optional<Error> broken_;
};

class ThreadGroup : public Group {
 public:
  ThreadGroup(Rank rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
  ~ThreadGroup() override { meeting_->leave(rank_); }

  Rank rank() const override { return rank_; }
  Rank size() const override { return meeting_->size(); }

  Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const auto mine = std::as_bytes(values);
    BELAY_ASSIGN(const Contributions all,
                 meeting_->exchange(
                     rank_, {.kind = Kind::reduce, .length = values.size(), .reduction = reduction},
                     Bytes(mine.begin(), mine.end())));
    for (Rank rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, (*all)[rank].data() + i * sizeof theirs, sizeof theirs);
        values[i] = combine(values[i], theirs, reduction);
      }
    }
    return {};
  }

  Result<std::vector<Bytes>> gather(std::span<const std::byte> mine) override {
    BELAY_ASSIGN(const Contributions all, meeting_->exchange(rank_, {.kind = Kind::gather},
                                                             Bytes(mine.begin(), mine.end())));
    return *all;
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    BELAY_ASSIGN(
        const Contributions all,
        meeting_->exchange(rank_, {.kind = Kind::broadcast, .length = bytes.size(), .root = root},
                           rank_ == root ? Bytes(bytes.begin(), bytes.end()) : Bytes()));
    std::copy((*all)[root].begin(), (*all)[root].end(), bytes.begin());
    return {};
  }

  Result<void> close() override {
    BELAY_TRY(meeting_->exchange(rank_, {.kind = Kind::close}, {}));
    return {};
  }

 private:
  const Rank rank_;
  const std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Group>> make_thread_groups(Rank size, std::uint64_t timeout_ns) {
  const auto meeting = std::make_shared<Meeting>(size, timeout_ns);
  std::vector<std::unique_ptr<Group>> groups;
  for (Rank rank = 0; rank < size; ++rank)
    groups.push_back(std::make_unique<ThreadGroup>(rank, meeting));
  return groups;
}

}  // namespace belay::ranks
