// SPDX-License-Identifier: Apache-2.0
#include "comm/hub_group.hpp"

#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/exchange_window.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

namespace belay::ranks {
namespace {

using Bytes = std::vector<std::byte>;

void put_word(Bytes& bytes, std::uint64_t word) {
  const auto raw = std::as_bytes(std::span(&word, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

void put_bytes(Bytes& bytes, std::span<const std::byte> more) {
  put_word(bytes, more.size());
  bytes.insert(bytes.end(), more.begin(), more.end());
}

/// Takes what put_word() and put_bytes() have written. Past the end: zeros, and failed().
class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : left_(bytes) {}
  bool failed() const { return failed_; }
  bool empty() const { return left_.empty(); }
  std::uint64_t word() {
    std::uint64_t word = 0;
    const auto raw = take(sizeof word);
    if (!raw.empty()) std::memcpy(&word, raw.data(), sizeof word);
    return word;
  }
  Bytes bytes() {
    const auto raw = take(word());
    return {raw.begin(), raw.end()};
  }

 private:
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  std::span<const std::byte> left_;
  bool failed_ = false;
};

Error garbled() { return {Code::peer_lost, "another head says what cannot be read"}; }

}  // namespace

/// Of one rank. Everything is asked of the hub.
class HubGroup final : public Group {
 public:
  HubGroup(Hub& hub, Rank rank) : hub_(hub), rank_(rank) {}

  Rank rank() const override { return rank_; }
  Rank size() const override { return hub_.size_; }

  Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const auto mine = std::as_bytes(values);
    BELAY_ASSIGN(const auto all,
                 hub_.ask(rank_, {Hub::Kind::reduce,
                                  values.size() * 16 + static_cast<std::uint64_t>(reduction),
                                  {mine.begin(), mine.end()}}));
    for (Rank rank = 0; rank < size(); ++rank) {
      if (rank == rank_) continue;
      for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint64_t theirs = 0;
        std::memcpy(&theirs, all[rank].data() + i * sizeof theirs, sizeof theirs);
        values[i] = combine(values[i], theirs, reduction);
      }
    }
    return {};
  }

  Result<std::vector<Bytes>> gather(std::span<const std::byte> mine) override {
    return hub_.ask(rank_, {Hub::Kind::gather, 0, {mine.begin(), mine.end()}});
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    if (root >= size())
      return fail(Code::invalid_argument, "broadcast from rank {}: the group has {} ranks", root,
                  size());
    BELAY_ASSIGN(const auto all,
                 hub_.ask(rank_, {Hub::Kind::broadcast, bytes.size() * size() + root,
                                  rank_ == root ? Bytes(bytes.begin(), bytes.end()) : Bytes()}));
    std::copy(all[root].begin(), all[root].end(), bytes.begin());
    return {};
  }

  Result<std::vector<Bytes>> exchange(std::span<const Message> out,
                                      std::span<const Rank> from) override {
    BELAY_TRY(check_exchange(rank_, size(), out, from));
    return hub_.exchange(rank_, out, from);
  }

  Result<std::unique_ptr<Window>> open_window(std::uint64_t bytes) override {
    return open_exchange_window(*this, bytes);
  }

  Result<std::unique_ptr<Group>> duplicate() override {
    BELAY_TRY(hub_.ask(rank_, {Hub::Kind::gather, 0, {}}));
    return fail(Code::unsupported, "duplicate: ranks that heads play have one group");
  }

  Result<void> close() override {
    BELAY_TRY(hub_.ask(rank_, {Hub::Kind::close, 0, {}}));
    return {};
  }

 private:
  Hub& hub_;
  const Rank rank_;
};

Hub::Hub(Group& heads, std::vector<std::vector<Rank>> crews, std::uint64_t timeout_ns)
    : heads_(heads), crews_(std::move(crews)), timeout_ns_(timeout_ns) {
  for (const auto& crew : crews_) size_ += static_cast<Rank>(crew.size());
  head_of_.resize(size_);
  calls_.resize(size_);
  for (Rank head = 0; head < crews_.size(); ++head)
    for (const Rank rank : crews_[head]) head_of_[rank] = head;
  for (const Rank rank : crews_[heads_.rank()]) {
    groups_[rank] = std::make_unique<HubGroup>(*this, rank);
    seats_[rank];
  }
}

Hub::~Hub() = default;

Group& Hub::group(Rank rank) { return *groups_.at(rank); }

Result<std::vector<Bytes>> Hub::ask(Rank rank, Call call) {
  std::unique_lock lock(mutex_);
  Seat& seat = seats_.at(rank);
  if (broken_) return Unexpected(*broken_);
  seat.call = std::move(call);
  return wait_for_answer(lock, seat);
}

Result<std::vector<Bytes>> Hub::exchange(Rank rank, std::span<const Message> out,
                                         std::span<const Rank> from) {
  std::vector<std::pair<Rank, Bytes>> copies;
  for (const Message& message : out)
    copies.emplace_back(message.peer, Bytes(message.bytes.begin(), message.bytes.end()));
  std::unique_lock lock(mutex_);
  Seat& seat = seats_.at(rank);
  if (broken_) return Unexpected(*broken_);
  seat.out = std::move(copies);
  seat.from.assign(from.begin(), from.end());
  return wait_for_answer(lock, seat);
}

Result<std::vector<Bytes>> Hub::wait_for_answer(std::unique_lock<std::mutex>& lock, Seat& seat) {
  seat.state = Seat::State::waiting;
  changed_.notify_all();
  changed_.wait(lock, [&] { return seat.state != Seat::State::waiting; });
  if (seat.refused) return Unexpected(*std::exchange(seat.refused, {}));
  return std::exchange(seat.answer, {});
}

Result<void> Hub::run(const std::function<void(Group& group)>& play) {
  for (auto& [rank, seat] : seats_) seat.state = Seat::State::playing;
  std::vector<std::thread> threads;
  for (auto& [rank, group] : groups_)
    threads.emplace_back([this, &play, &seat = seats_[rank], &mine = *group] {
      play(mine);
      const std::lock_guard guard(mutex_);
      seat.state = Seat::State::away;
      changed_.notify_all();
    });
  auto carried = carry();
  for (std::thread& thread : threads) thread.join();
  return carried;
}

Result<void> Hub::carry() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto done = broken_ ? Result<bool>(Unexpected(*broken_)) : Result<bool>(false);
    if (done) {
      const auto ready = wait_for_ranks(lock);
      done = ready ? step(lock) : Result<bool>(Unexpected(ready.error()));
    }
    if (!done) {
      break_off(done.error());
      return Unexpected(done.error());
    }
    if (*done) return {};
  }
}

Result<void> Hub::wait_for_ranks(std::unique_lock<std::mutex>& lock) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kLongest = std::numeric_limits<std::int64_t>::max() / 2;
  const auto patience =
      std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(timeout_ns_, kLongest)));
  const auto playing = [&] {
    return std::count_if(seats_.begin(), seats_.end(),
                         [](const auto& at) { return at.second.state == Seat::State::playing; });
  };
  const auto waiting = [&] {
    return std::any_of(seats_.begin(), seats_.end(),
                       [](const auto& at) { return at.second.state == Seat::State::waiting; });
  };
  while (playing() > 0) {
    const auto before = playing();
    const auto until = Clock::now() + patience;
    const auto changed = [&] { return playing() != before; };
    if (!waiting())
      changed_.wait(lock, changed);
    else if (!changed_.wait_until(lock, until, changed))
      return fail(Code::peer_lost, "a rank of this head did not call within {} ms",
                  timeout_ns_ / 1'000'000);
  }
  return {};
}

/// What is new: for each rank that waits, its collective once; which heads get parcels; whether
/// anybody is left. `parcels` get messages by head.
Bytes Hub::describe(std::vector<Bytes>& parcels) {
  Bytes news;
  std::uint64_t left = 0;
  Bytes calls;
  for (auto& [rank, seat] : seats_) {
    if (seat.state == Seat::State::waiting) ++left;
    if (seat.call.kind != Kind::none) {
      put_word(calls, rank);
      put_word(calls, static_cast<std::uint64_t>(seat.call.kind));
      put_word(calls, seat.call.detail);
      put_bytes(calls, seat.call.bytes);
      seat.call = {};
    }
    for (auto& [to, bytes] : std::exchange(seat.out, {})) {
      Bytes& parcel = parcels[head_of_[to]];
      put_word(parcel, rank);
      put_word(parcel, to);
      put_bytes(parcel, bytes);
    }
  }
  put_word(news, left);
  put_word(news, std::exchange(answered_, 0));
  for (const Bytes& parcel : parcels) put_word(news, parcel.size());
  news.insert(news.end(), calls.begin(), calls.end());
  return news;
}

Result<bool> Hub::step(std::unique_lock<std::mutex>& lock) {
  std::vector<Bytes> parcels(crews_.size());
  const Bytes mine = describe(parcels);
  lock.unlock();  // all ranks of this head wait
  auto news = heads_.gather(mine);
  Result<void> passed;
  if (news) passed = pass_parcels(*news, parcels);
  lock.lock();
  if (!news) return Unexpected(news.error());
  BELAY_TRY(passed);
  std::uint64_t left = 0;
  bool any = false;
  for (const Bytes& bytes : *news) {
    Taker taker(bytes);
    left += taker.word();
    any = taker.word() > 0 || any;
    for (std::size_t head = 0; head < crews_.size(); ++head) any = taker.word() > 0 || any;
    while (!taker.empty() && !taker.failed()) {
      any = true;
      const std::uint64_t rank = taker.word();
      Call call{static_cast<Kind>(taker.word()), taker.word(), taker.bytes()};
      if (rank < size_) calls_[rank] = std::move(call);
    }
    if (taker.failed()) return Unexpected(garbled());
  }
  if (left == 0) return true;
  answer_messages();
  answer_collective();
  if (!any && answered_ == 0)
    return fail(Code::peer_lost, "ranks wait for messages that nobody sends");
  return false;
}

Result<void> Hub::pass_parcels(const std::vector<Bytes>& news, const std::vector<Bytes>& parcels) {
  std::vector<Message> out;
  std::vector<Rank> from;
  for (Rank head = 0; head < crews_.size(); ++head) {
    Taker taker(news[head]);
    for (std::size_t skipped = 0; skipped < 2 + heads_.rank(); ++skipped) taker.word();
    if (taker.word() > 0) from.push_back(head);
    if (!parcels[head].empty()) out.push_back({head, parcels[head]});
  }
  if (out.empty() && from.empty()) return {};
  BELAY_ASSIGN(const auto received, heads_.exchange(out, from));
  for (const Bytes& parcel : received) BELAY_TRY(deposit(parcel));
  return {};
}

Result<void> Hub::deposit(std::span<const std::byte> parcel) {
  Taker taker(parcel);
  while (!taker.empty()) {
    const auto from = static_cast<Rank>(taker.word());
    const auto to = static_cast<Rank>(taker.word());
    Bytes bytes = taker.bytes();
    if (taker.failed()) return Unexpected(garbled());
    messages_[{from, to}].push_back(std::move(bytes));
  }
  return {};
}

void Hub::answer_messages() {
  for (auto& [rank, seat] : seats_) {
    if (seat.state != Seat::State::waiting || calls_[rank].kind != Kind::none) continue;
    const auto is_here = [&, to = rank](Rank from) {
      const auto found = messages_.find({from, to});
      return found != messages_.end() && !found->second.empty();
    };
    if (!std::all_of(seat.from.begin(), seat.from.end(), is_here)) continue;
    for (const Rank from : std::exchange(seat.from, {})) {
      auto& waiting = messages_[{from, rank}];
      seat.answer.push_back(std::move(waiting.front()));
      waiting.erase(waiting.begin());
    }
    release(seat);
  }
}

void Hub::answer_collective() {
  if (std::any_of(calls_.begin(), calls_.end(),
                  [](const Call& call) { return call.kind == Kind::none; }))
    return;
  const bool alike = std::all_of(calls_.begin(), calls_.end(),
                                 [&](const Call& call) { return call == calls_[0]; });
  for (auto& [rank, seat] : seats_) {
    if (alike)
      for (const Call& call : calls_) seat.answer.push_back(call.bytes);
    else
      seat.refused = Error(Code::invalid_argument,
                           "ranks are out of step: all must make the same calls in the same order");
    release(seat);
  }
  for (Call& call : calls_) call = {};
}

void Hub::release(Seat& seat) {
  seat.state = Seat::State::playing;
  ++answered_;
  changed_.notify_all();
}

void Hub::break_off(const Error& error) {
  broken_ = Error(Code::peer_lost, "the heads are out of touch since " + error.message());
  for (auto& [rank, seat] : seats_) {
    if (seat.state != Seat::State::waiting) continue;
    seat.refused = *broken_;
    seat.state = Seat::State::playing;
  }
  changed_.notify_all();
}

}  // namespace belay::ranks
