// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_group.hpp"

#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/exchange_window.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace belay::simulator {

namespace {

/// A broadcast's detail is root * kRootUnit + length.
constexpr std::uint64_t kRootUnit = 1ull << 32;

}  // namespace

SimHub::SimHub(World& world, Rank size, std::function<void(const std::string&)> complain)
    : world_(&world), size_(size), complain_(std::move(complain)) {}

SimHub::Round& SimHub::round(std::size_t number) {
  while (rounds_.size() <= number) {
    rounds_.emplace_back();
    rounds_.back().parts.resize(size_);
    rounds_.back().arrived.resize(size_);
  }
  return rounds_[number];
}

bool SimHub::complete(const Round& round) const {
  if (round.collective == Collective::broadcast) return round.arrived[round.detail / kRootUnit];
  return std::all_of(round.arrived.begin(), round.arrived.end(), [](bool b) { return b; });
}

SimHub& SimHub::duplicate(std::size_t number) {
  auto& hub = duplicates_[number];
  if (!hub) hub = std::make_unique<SimHub>(*world_, size_, complain_);
  return *hub;
}

class SimGroup final : public ranks::Group {
 public:
  SimGroup(SimHub& hub, Process& process, std::uint64_t timeout_ns, bool one_thread)
      : hub_(&hub), process_(&process), timeout_ns_(timeout_ns), one_thread_(one_thread) {}

  Rank rank() const override { return process_->rank; }
  Rank size() const override { return hub_->size_; }

  Result<void> reduce(std::span<std::uint64_t> values, ranks::Reduction reduction) override {
    const auto detail = values.size() * 16 + static_cast<std::uint64_t>(reduction);
    BELAY_ASSIGN(const auto* round, meet(Collective::reduce, detail, std::as_bytes(values)));
    std::vector<std::uint64_t> other(values.size());
    for (Rank from = 0; from < size(); ++from) {
      const auto& part = round->parts[from];
      if (part.empty()) continue;
      std::memcpy(other.data(), part.data(), part.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = from == 0 ? other[i] : combine(values[i], other[i], reduction);
    }
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override {
    BELAY_ASSIGN(const auto* round, meet(Collective::gather, 0, mine));
    return round->parts;
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    if (root >= size()) return fail(Code::invalid_argument, "broadcast: there is no rank {}", root);
    const auto mine = rank() == root ? std::span<const std::byte>(bytes) : std::span<std::byte>();
    BELAY_ASSIGN(const auto* round,
                 meet(Collective::broadcast, root * kRootUnit + bytes.size(), mine));
    const auto& part = round->parts[root];
    if (!part.empty()) std::memcpy(bytes.data(), part.data(), part.size());
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> exchange(std::span<const ranks::Message> out,
                                                       std::span<const Rank> from) override;

  Result<std::unique_ptr<ranks::Window>> open_window(std::uint64_t bytes) override {
    return ranks::open_exchange_window(*this, bytes);
  }

  Result<std::unique_ptr<ranks::Group>> duplicate() override {
    BELAY_TRY(meet(Collective::duplicate, 0, {}));
    if (one_thread_) return fail(Code::unsupported, "one thread at a time");
    return make_sim_group(hub_->duplicate(next_ - 1), *process_, timeout_ns_);
  }

  Result<void> close() override {
    BELAY_TRY(meet(Collective::close, 0, {}));
    return {};
  }

 private:
  /// Gives this rank's part to the next round and waits until the round is complete.
  Result<const SimHub::Round*> meet(Collective collective, std::uint64_t detail,
                                    std::span<const std::byte> part);
  Unexpected lost(const char* why);

  SimHub* hub_;
  Process* process_;
  std::uint64_t timeout_ns_;
  bool one_thread_;
  std::size_t next_ = 0;
  bool broken_ = false;
};

Result<const SimHub::Round*> SimGroup::meet(Collective collective, std::uint64_t detail,
                                            std::span<const std::byte> part) {
  if (broken_) return lost("the group is broken");
  World& world = *hub_->world_;
  const Fate fate = world.point(*process_);
  if (fate == Fate::fails) return lost("the process was killed");
  world.note(static_cast<std::uint64_t>(collective) * 100 + rank());
  world.trace("rank {} {}: collective {} kind {} detail {}", rank(), world.scheduler().task_name(),
              next_, static_cast<int>(collective), detail);

  SimHub::Round& round = hub_->round(next_++);
  const bool first =
      std::none_of(round.arrived.begin(), round.arrived.end(), [](bool b) { return b; });
  if (first) {
    round.collective = collective;
    round.detail = detail;
  } else if (round.collective != collective || round.detail != detail) {
    hub_->complain_(
        fmt::format("rank {}: collective {} is kind {} detail {}, but kind {} detail {} elsewhere",
                    rank(), next_ - 1, static_cast<int>(collective), detail,
                    static_cast<int>(round.collective), round.detail));
    return lost("ranks call different collectives");
  }
  round.parts[rank()].assign(part.begin(), part.end());
  round.arrived[rank()] = true;
  if (fate != Fate::completes) {
    world.strike();
    if (fate == Fate::torn_last) round.arrived[rank()] = false;
    return lost("the process was killed");
  }

  const bool met =
      world.scheduler().wait_until([&] { return process_->killed || hub_->complete(round); },
                                   world.scheduler().now_ns() + timeout_ns_);
  if (met && !process_->killed) return &round;
  // Whether those who arrive later still hear this rank is a matter of luck.
  if (!hub_->complete(round) && world.random().one_in(2)) round.arrived[rank()] = false;
  return lost(process_->killed ? "the process was killed" : "a rank did not answer in time");
}

Result<std::vector<std::vector<std::byte>>> SimGroup::exchange(std::span<const ranks::Message> out,
                                                               std::span<const Rank> from) {
  if (broken_) return lost("the group is broken");
  BELAY_TRY(ranks::check_exchange(rank(), size(), out, from));
  World& world = *hub_->world_;
  const Fate fate = world.point(*process_);
  if (fate == Fate::fails) return lost("the process was killed");
  world.note(0xe8c4a6e00 + rank());
  world.trace("rank {} {}: exchange, {} messages out, {} in", rank(), world.scheduler().task_name(),
              out.size(), from.size());
  // Torn: the kill strikes when half of the messages are on their way.
  for (const ranks::Message& message : fate == Fate::torn_last ? out.first(out.size() / 2) : out)
    hub_->messages_[{rank(), message.peer}].emplace_back(message.bytes.begin(),
                                                         message.bytes.end());
  if (fate != Fate::completes) {
    world.strike();
    return lost("the process was killed");
  }
  const auto all_here = [&] {
    return std::none_of(from.begin(), from.end(), [&](Rank peer) {
      const auto found = hub_->messages_.find({peer, rank()});
      return found == hub_->messages_.end() || found->second.empty();
    });
  };
  const bool met = world.scheduler().wait_until([&] { return process_->killed || all_here(); },
                                                world.scheduler().now_ns() + timeout_ns_);
  if (process_->killed) return lost("the process was killed");
  if (!met) return lost("a rank did not answer in time");
  std::vector<std::vector<std::byte>> received;
  for (const Rank peer : from) {
    auto& waiting = hub_->messages_[{peer, rank()}];
    received.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  return received;
}

Unexpected SimGroup::lost(const char* why) {
  broken_ = true;
  hub_->world_->note(0x10e57 + rank());
  return fail(Code::peer_lost, "rank {}: {}", rank(), why);
}

std::unique_ptr<ranks::Group> make_sim_group(SimHub& hub, Process& process,
                                             std::uint64_t timeout_ns, bool one_thread) {
  return std::make_unique<SimGroup>(hub, process, timeout_ns, one_thread);
}

}  // namespace belay::simulator
