// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/exchange_window.hpp"
#include "comm/group.hpp"
#include "comm/thread_meeting.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace belay::ranks {
namespace {

using Bytes = Meeting::Bytes;
using Kind = Call::Kind;

class ThreadGroup : public Group {
 public:
  ThreadGroup(Rank rank, std::shared_ptr<Meeting> meeting)
      : rank_(rank), meeting_(std::move(meeting)) {}
  ~ThreadGroup() override { meeting_->leave(rank_); }

  Rank rank() const override { return rank_; }
  Rank size() const override { return meeting_->size(); }

  Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const auto mine = std::as_bytes(values);
    BELAY_ASSIGN(const auto round,
                 meeting_->meet(
                     rank_, {.kind = Kind::reduce, .length = values.size(), .reduction = reduction},
                     Bytes(mine.begin(), mine.end())));
    for (Rank rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, round->contributions[rank].data() + i * sizeof theirs, sizeof theirs);
        values[i] = combine(values[i], theirs, reduction);
      }
    }
    return {};
  }

  Result<std::vector<Bytes>> gather(std::span<const std::byte> mine) override {
    BELAY_ASSIGN(const auto round,
                 meeting_->meet(rank_, {.kind = Kind::gather}, Bytes(mine.begin(), mine.end())));
    return round->contributions;
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    BELAY_ASSIGN(
        const auto round,
        meeting_->meet(rank_, {.kind = Kind::broadcast, .length = bytes.size(), .root = root},
                       rank_ == root ? Bytes(bytes.begin(), bytes.end()) : Bytes()));
    const Bytes& sent = round->contributions[root];
    std::copy(sent.begin(), sent.end(), bytes.begin());
    return {};
  }

  Result<std::vector<Bytes>> exchange(std::span<const Message> out,
                                      std::span<const Rank> from) override {
    BELAY_TRY(check_exchange(rank_, size(), out, from));
    return meeting_->exchange(rank_, out, from);
  }

  Result<std::unique_ptr<Window>> open_window(std::uint64_t bytes) override {
    return open_exchange_window(*this, bytes);
  }

  Result<std::unique_ptr<Group>> duplicate() override {
    BELAY_ASSIGN(const auto round, meeting_->meet(rank_, {.kind = Kind::duplicate}, {}));
    return std::unique_ptr<Group>(std::make_unique<ThreadGroup>(rank_, round->duplicate));
  }

  Result<std::unique_ptr<Group>> subset(std::span<const Rank> members) override {
    const auto mine = std::as_bytes(members);
    BELAY_ASSIGN(const auto round,
                 meeting_->meet(rank_, {.kind = Kind::subset}, Bytes(mine.begin(), mine.end())));
    const auto place = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::unique_ptr<Group>(std::make_unique<ThreadGroup>(
        static_cast<Rank>(place), round->subsets.at(round->contributions[rank_])));
  }

  Result<void> close() override {
    BELAY_TRY(meeting_->meet(rank_, {.kind = Kind::close}, {}));
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
