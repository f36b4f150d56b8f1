// SPDX-License-Identifier: Apache-2.0
#include "comm/thread_meeting.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <limits>

namespace belay::ranks {
namespace {

using Kind = Call::Kind;

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
    case Kind::duplicate:
      return "duplicate";
    case Kind::subset:
      return "subset";
    case Kind::close:
      return "close";
  }
  return "unknown";
}

/// Why the ranks of a complete round cannot be served.
std::optional<Error> judge(const Meeting::Round& round) {
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

std::string absent_ranks(const Meeting::Round& round) {
  std::string absent;
  for (Rank rank = 0; rank < round.calls.size(); ++rank)
    if (!round.calls[rank]) absent += fmt::format("{}{}", absent.empty() ? "" : ", ", rank);
  return absent;
}

std::string no_answer(const std::string& ranks, std::uint64_t timeout_ns) {
  return fmt::format("no answer from rank {} within {} ms", ranks, timeout_ns / 1'000'000);
}

}  // namespace

Meeting::Meeting(Rank size, std::uint64_t timeout_ns)
    : size_(size), timeout_ns_(timeout_ns), round_(std::make_shared<Round>(size)) {}

Result<std::shared_ptr<const Meeting::Round>> Meeting::meet(Rank rank, const Call& call,
                                                            Bytes mine) {
  const Deadline until = deadline();
  std::unique_lock lock(mutex_);
  if (broken_) return Unexpected(broken_->within(describe(call)));
  const std::shared_ptr<Round> round = round_;
  round->calls[rank] = call;
  round->contributions[rank] = std::move(mine);
  if (++round->arrived == size_) {
    finish(*round);
  } else {
    changed_.wait_until(lock, until, [&] { return round->complete || broken_; });
    if (!round->complete) {
      if (!broken_) break_group(no_answer(absent_ranks(*round), timeout_ns_));
      return Unexpected(broken_->within(describe(call)));
    }
  }
  if (round->failure) return Unexpected(*round->failure);
  return std::shared_ptr<const Round>(round);
}

Result<std::vector<Meeting::Bytes>> Meeting::exchange(Rank rank, std::span<const Message> out,
                                                      std::span<const Rank> from) {
  const Deadline until = deadline();
  std::vector<Bytes> sent;
  for (const Message& message : out) sent.emplace_back(message.bytes.begin(), message.bytes.end());
  std::unique_lock lock(mutex_);
  if (broken_) return Unexpected(broken_->within("exchange"));
  for (std::size_t i = 0; i < out.size(); ++i)
    messages_[{rank, out[i].peer}].push_back(std::move(sent[i]));
  changed_.notify_all();
  std::vector<Bytes> received;
  for (const Rank peer : from) {
    BELAY_ASSIGN(Bytes bytes, take_message(lock, peer, rank, until));
    received.push_back(std::move(bytes));
  }
  return received;
}

Result<Meeting::Bytes> Meeting::take_message(std::unique_lock<std::mutex>& lock, Rank from, Rank to,
                                             Deadline deadline) {
  auto& waiting = messages_[{from, to}];
  changed_.wait_until(lock, deadline, [&] { return !waiting.empty() || broken_; });
  if (waiting.empty()) {
    if (!broken_) break_group(no_answer(std::to_string(from), timeout_ns_));
    return Unexpected(broken_->within("exchange"));
  }
  Bytes bytes = std::move(waiting.front());
  waiting.pop_front();
  return bytes;
}

void Meeting::leave(Rank rank) {
  const std::scoped_lock lock(mutex_);
  if (!broken_) break_group(fmt::format("rank {} has left the group", rank));
}

Meeting::Deadline Meeting::deadline() const {
  // Half of the clock's range, so that adding it to any time of this machine cannot overflow.
  constexpr std::uint64_t kLongest = std::numeric_limits<std::int64_t>::max() / 2;
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(timeout_ns_, kLongest)));
}

void Meeting::finish(Round& round) {
  round.failure = judge(round);
  if (round.calls[0]->kind == Kind::duplicate)
    round.duplicate = std::make_shared<Meeting>(size_, timeout_ns_);
  if (round.calls[0]->kind == Kind::subset)
    for (const Bytes& members : round.contributions) {
      auto& meeting = round.subsets[members];
      if (!meeting)
        meeting = std::make_shared<Meeting>(static_cast<Rank>(members.size() / sizeof(Rank)),
                                            timeout_ns_);
    }
  round.complete = true;
  round_ = std::make_shared<Round>(size_);
  changed_.notify_all();
}

void Meeting::break_group(const std::string& reason) {
  broken_ = Error(Code::peer_lost, reason);
  changed_.notify_all();
}

}  // namespace belay::ranks
