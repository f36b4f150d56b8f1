// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_window.hpp"

#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "os/memory.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace belay::ranks {
namespace {

using Words = std::vector<std::uint64_t>;

/// A put without its bytes, or a landing seen from its target.
struct Move {
  Rank source = 0;
  Rank target = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  auto key() const { return std::tie(source, target, offset, bytes); }
  bool operator<(const Move& other) const { return key() < other.key(); }
  bool operator==(const Move& other) const { return key() == other.key(); }
};

Result<os::AlignedMemory> allocate_window(std::uint64_t bytes) {
  if (bytes == 0) return os::AlignedMemory();
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max()))
    return fail(Code::no_space, "no address space for {} bytes", bytes);
  return os::AlignedMemory::allocate(bytes);
}

/// Every rank's words, by rank. All have at least `shortest`.
Result<std::vector<Words>> gather_words(Group& group, const Words& mine, std::size_t shortest) {
  BELAY_ASSIGN(const auto gathered, group.gather(std::as_bytes(std::span(mine))));
  std::vector<Words> all;
  for (const auto& part : gathered) {
    if (part.size() % sizeof(std::uint64_t) != 0 || part.size() < shortest * sizeof(std::uint64_t))
      return fail(Code::invalid_argument, "ranks are out of step: rank {} is in another call",
                  all.size());
    all.emplace_back(part.size() / sizeof(std::uint64_t));
    std::memcpy(all.back().data(), part.data(), part.size());
  }
  return all;
}

// What a rank tells all others before a round: is it at fault, how many puts it makes, and three
// words for each put, then for each landing.
constexpr std::size_t kPrefixWords = 2;
constexpr std::size_t kMoveWords = 3;

Words describe_round(bool at_fault, std::span<const Put> puts, std::span<const Landing> landings) {
  Words words = {at_fault, puts.size()};
  for (const Put& put : puts) words.insert(words.end(), {put.target, put.offset, bytes_of(put)});
  for (const Landing& landing : landings)
    words.insert(words.end(), {landing.source, landing.offset, landing.bytes});
  return words;
}

/// One round, as all ranks described it.
struct Plan {
  std::vector<Move> puts;      ///< by source, in its order
  std::vector<Move> landings;  ///< by target, in its order
};

Result<Plan> read_plan(const std::vector<Words>& all) {
  Plan plan;
  for (Rank rank = 0; rank < all.size(); ++rank) {
    const Words& words = all[rank];
    if (words[0] != 0)
      return fail(Code::invalid_argument, "put: the arguments of rank {} are wrong", rank);
    const std::size_t moves = (words.size() - kPrefixWords) / kMoveWords;
    if (words.size() != kPrefixWords + moves * kMoveWords || words[1] > moves)
      return fail(Code::invalid_argument, "ranks are out of step: rank {} is in another call",
                  rank);
    for (std::size_t i = 0; i < moves; ++i) {
      const std::uint64_t* word = &words[kPrefixWords + i * kMoveWords];
      const Rank other = static_cast<Rank>(word[0]);
      if (i < words[1])
        plan.puts.push_back({rank, other, word[1], word[2]});
      else
        plan.landings.push_back({other, rank, word[1], word[2]});
    }
  }
  return plan;
}

std::string describe(const Move& move) {
  return fmt::format("{} bytes from rank {} at {} of rank {}", move.bytes, move.source, move.offset,
                     move.target);
}

/// Is every put expected, and every landing put?
Result<void> check_plan(const Plan& plan) {
  auto puts = plan.puts;
  auto landings = plan.landings;
  for (auto* moves : {&puts, &landings}) {
    std::erase_if(*moves, [](const Move& move) { return move.bytes == 0; });
    std::sort(moves->begin(), moves->end());
  }
  const auto [put, landing] =
      std::mismatch(puts.begin(), puts.end(), landings.begin(), landings.end());
  if (put == puts.end() && landing == landings.end()) return {};
  return fail(Code::invalid_argument, "put: puts and landings disagree: {} put, {} expected",
              put == puts.end() ? "nothing is" : describe(*put),
              landing == landings.end() ? "nothing" : describe(*landing));
}

class ExchangeWindow : public Window {
 public:
  ExchangeWindow(Group& group, os::AlignedMemory memory, std::uint64_t bytes, Words windows)
      : group_(group), memory_(std::move(memory)), bytes_(bytes), windows_(std::move(windows)) {}

  std::span<std::byte> bytes() override { return memory_.bytes().first(bytes_); }

  Result<void> put(std::span<const Put> puts, std::span<const Landing> landings) override {
    if (closed_) return fail(Code::invalid_argument, "put: the window is closed");
    const auto checked = check_round(group_.rank(), puts, landings, windows_);
    BELAY_ASSIGN(const auto all,
                 gather_words(group_, describe_round(!checked, puts, landings), kPrefixWords));
    BELAY_TRY(checked);
    BELAY_ASSIGN(const Plan plan, read_plan(all));
    BELAY_TRY(check_plan(plan));
    BELAY_ASSIGN(const auto packets, send(puts, plan));
    land(plan, packets);
    return {};
  }

  Result<void> close() override {
    if (closed_) return fail(Code::invalid_argument, "close: the window is closed");
    BELAY_TRY(group_.gather({}));
    memory_ = {};
    bytes_ = 0;
    closed_ = true;
    return {};
  }

 private:
  using Packets = std::map<Rank, std::vector<std::byte>>;

  /// All that goes from one rank to another is one message: its puts in the order of the plan.
  Result<Packets> send(std::span<const Put> puts, const Plan& plan) {
    Packets outgoing;
    for (const Put& put : puts)
      for (const auto& piece : put.pieces)
        outgoing[put.target].insert(outgoing[put.target].end(), piece.begin(), piece.end());
    std::erase_if(outgoing, [](const auto& packet) { return packet.second.empty(); });
    std::vector<Message> messages;
    for (const auto& [target, bytes] : outgoing) messages.push_back({target, bytes});
    Packets incoming;
    for (const Move& move : plan.puts)
      if (move.target == group_.rank() && move.bytes > 0) incoming[move.source];
    std::vector<Rank> sources;
    for (const auto& packet : incoming) sources.push_back(packet.first);
    BELAY_ASSIGN(auto received, group_.exchange(messages, sources));
    for (std::size_t i = 0; i < sources.size(); ++i) incoming[sources[i]] = std::move(received[i]);
    return incoming;
  }

  void land(const Plan& plan, const Packets& packets) {
    std::map<Rank, std::size_t> read;
    for (const Move& move : plan.puts) {
      if (move.target != group_.rank() || move.bytes == 0) continue;
      std::size_t& at = read[move.source];
      std::memcpy(bytes().data() + move.offset, packets.at(move.source).data() + at, move.bytes);
      at += move.bytes;
    }
  }

  Group& group_;
  os::AlignedMemory memory_;
  std::uint64_t bytes_;
  const Words windows_;  ///< the sizes of all ranks' windows
  bool closed_ = false;
};

}  // namespace

Result<std::unique_ptr<Window>> open_exchange_window(Group& group, std::uint64_t bytes) {
  auto memory = allocate_window(bytes);
  BELAY_ASSIGN(const auto all, gather_words(group, {memory.has_value(), bytes}, 2));
  if (!memory) return Unexpected(memory.error().within("open window"));
  Words windows;
  for (const Words& words : all) {
    if (words[0] == 0)
      return fail(Code::no_space, "open window: rank {} has no memory for {} bytes", windows.size(),
                  words[1]);
    windows.push_back(words[1]);
  }
  return std::unique_ptr<Window>(
      std::make_unique<ExchangeWindow>(group, *std::move(memory), bytes, std::move(windows)));
}

}  // namespace belay::ranks
