// SPDX-License-Identifier: Apache-2.0
#include "session/copy_exchange.hpp"

#include "base/try.hpp"
#include "comm/exchange_window.hpp"
#include "format/wire.hpp"

#include <algorithm>

namespace belay::session {
namespace {

using dedup::Put;

bool contains(const std::vector<Rank>& ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// What one receiver must know: this rank's whole index, which of it comes, perhaps the manifest.
std::vector<std::byte> encode_announcement(const VersionPlan& plan,
                                           std::span<const BroughtBlock> brought,
                                           const std::vector<std::uint32_t>* sent,
                                           std::span<const std::byte> manifest) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  const std::size_t entries = sent == nullptr ? 0 : plan.blocks.stored().size();
  writer.field(std::uint64_t{entries});
  std::size_t next = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::uint32_t index = plan.blocks.stored()[i];
    const dedup::Block& block = brought[index].block;
    const bool comes = next < sent->size() && (*sent)[next] == index;
    if (comes) ++next;
    writer.pair(block.fingerprint.low, block.fingerprint.high);
    writer.field(block.length);
    writer.field(static_cast<std::uint8_t>(comes));
  }
  writer.bytes(manifest);
  return bytes;
}

Result<KeptCopies::Source> decode_announcement(Rank rank, std::span<const std::byte> bytes,
                                               std::uint64_t expected_bytes) {
  constexpr std::size_t kEntryBytes = 21;
  KeptCopies::Source source{.rank = rank, .entries = {}, .sent = {}, .manifest = {}};
  format::WireReader reader(bytes);
  const auto entries = reader.field<std::uint64_t>();
  if (entries > reader.remaining() / kEntryBytes)
    return fail(Code::corruption, "rank {} announced copies in a way that cannot be read", rank);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < entries; ++i) {
    format::IndexEntry entry;
    entry.fingerprint.low = reader.field<std::uint64_t>();
    entry.fingerprint.high = reader.field<std::uint64_t>();
    entry.length = reader.field<std::uint32_t>();
    source.entries.push_back(entry);
    source.sent.push_back(reader.field<std::uint8_t>() != 0);
    if (source.sent.back()) sum += entry.length;
  }
  if (sum != expected_bytes)
    return fail(Code::corruption, "rank {} announced {} bytes of copies, then blocks of {}", rank,
                expected_bytes, sum);
  const auto manifest = reader.bytes(reader.remaining());
  source.manifest.assign(manifest.begin(), manifest.end());
  return source;
}

std::vector<std::uint32_t> lengths_of(std::span<const BroughtBlock> brought,
                                      const std::vector<std::uint32_t>& blocks) {
  std::vector<std::uint32_t> lengths;
  for (const std::uint32_t block : blocks) lengths.push_back(brought[block].block.length);
  return lengths;
}

std::vector<std::uint32_t> lengths_of(const KeptCopies::Source& source) {
  std::vector<std::uint32_t> lengths;
  for (std::size_t i = 0; i < source.entries.size(); ++i)
    if (source.sent[i]) lengths.push_back(source.entries[i].length);
  return lengths;
}

/// The blocks of one version on their way: who puts what where, round by round.
class BlockRoutes {
 public:
  BlockRoutes(const CopyExchange& exchange, const std::vector<KeptCopies::Source>& sources,
              const dedup::Rounds& rounds)
      : exchange_(exchange), sources_(sources), needed_(exchange.group.size()) {
    std::vector<dedup::Stream> streams;
    for (Rank receiver = 0; receiver < exchange.group.size(); ++receiver) {
      streams.push_back(
          dedup::plan_stream(exchange.plan.bytes_to(receiver), exchange.plan.ring, receiver));
      needed_[receiver] = rounds.window_bytes(streams.back().bytes);
      count_ = std::max(count_, rounds.count(streams.back().bytes));
    }
    const Rank rank = exchange.group.rank();
    for (const auto& send : exchange.plan.blocks.sends())
      outgoing_.push_back(dedup::plan_puts(streams[send.receiver].offsets[rank],
                                           lengths_of(exchange.brought, send.blocks), rounds));
    for (const KeptCopies::Source& source : sources)
      incoming_.push_back(
          dedup::plan_puts(streams[rank].offsets[source.rank], lengths_of(source), rounds));
  }

  std::uint64_t rounds() const { return count_; }
  /// Sizes of windows, by rank.
  const std::vector<std::uint64_t>& needed() const { return needed_; }

  std::vector<ranks::Put> puts(std::uint64_t round) const {
    std::vector<ranks::Put> puts;
    for (std::size_t i = 0; i < outgoing_.size(); ++i) {
      const Put* put = put_of_round(outgoing_[i], round);
      if (put == nullptr) continue;
      const auto& send = exchange_.plan.blocks.sends()[i];
      ranks::Put& out = puts.emplace_back();
      out.target = send.receiver;
      out.offset = put->offset;
      for (std::size_t block = 0; block < put->blocks; ++block)
        out.pieces.push_back(exchange_.brought[send.blocks[put->first_block + block]].bytes);
    }
    return puts;
  }

  std::vector<ranks::Landing> landings(std::uint64_t round) const {
    std::vector<ranks::Landing> landings;
    for (std::size_t i = 0; i < incoming_.size(); ++i)
      if (const Put* put = put_of_round(incoming_[i], round))
        landings.push_back({sources_[i].rank, put->offset, put->bytes});
    return landings;
  }

  std::vector<KeptCopies::Arrival> arrivals(std::uint64_t round,
                                            std::span<const std::byte> window) const {
    std::vector<KeptCopies::Arrival> arrivals;
    for (std::size_t i = 0; i < incoming_.size(); ++i)
      if (const Put* put = put_of_round(incoming_[i], round))
        arrivals.push_back({i, window.subspan(put->offset, put->bytes)});
    return arrivals;
  }

 private:
  static const Put* put_of_round(const std::vector<Put>& puts, std::uint64_t round) {
    const auto found =
        std::lower_bound(puts.begin(), puts.end(), round,
                         [](const Put& put, std::uint64_t r) { return put.round < r; });
    return found == puts.end() || found->round != round ? nullptr : &*found;
  }

  const CopyExchange& exchange_;
  const std::vector<KeptCopies::Source>& sources_;
  std::vector<std::uint64_t> needed_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<Put>> outgoing_;  ///< by send
  std::vector<std::vector<Put>> incoming_;  ///< by source
};

}  // namespace

Result<void> ExchangeWindows::provide(ranks::Group& group,
                                      const std::vector<std::uint64_t>& needed) {
  bytes_.resize(needed.size());
  bool enough = windows_[0] != nullptr;
  for (std::size_t rank = 0; rank < needed.size(); ++rank) {
    if (needed[rank] > bytes_[rank]) enough = false;
    bytes_[rank] = std::max(bytes_[rank], needed[rank]);
  }
  if (enough) return {};
  BELAY_TRY(close());
  for (auto& window : windows_) {
    auto opened = group.open_window(bytes_[group.rank()]);
    // Shared memory may be scarce, in containers above all: all ranks send messages then.
    if (!opened && opened.error().code() == Code::no_space)
      opened = ranks::open_exchange_window(group, bytes_[group.rank()]);
    BELAY_ASSIGN(window, std::move(opened));
  }
  return {};
}

Result<void> ExchangeWindows::close() {
  for (auto& window : windows_) {
    if (!window) continue;
    BELAY_TRY(window->close());
    window.reset();
  }
  return {};
}

Result<std::vector<KeptCopies::Source>> CopyExchange::announce(
    std::span<const std::byte> manifest) const {
  const Rank rank = group.rank();
  const auto keepers = plan.manifest_keepers(layout, rank);
  std::vector<std::vector<std::byte>> texts;
  std::vector<Rank> receivers;
  for (const auto& send : plan.blocks.sends()) {
    receivers.push_back(send.receiver);
    const bool keeps = contains(keepers, send.receiver);
    texts.push_back(encode_announcement(plan, brought, &send.blocks,
                                        keeps ? manifest : std::span<const std::byte>{}));
  }
  for (const Rank keeper : keepers) {
    if (contains(receivers, keeper)) continue;
    receivers.push_back(keeper);
    texts.push_back(encode_announcement(plan, brought, nullptr, manifest));
  }
  std::vector<ranks::Message> out;
  for (std::size_t i = 0; i < texts.size(); ++i) out.push_back({receivers[i], texts[i]});

  const auto bytes_from = plan.bytes_to(rank);
  std::vector<Rank> from;
  for (Rank sender = 0; sender < group.size(); ++sender)
    if (sender != rank &&
        (bytes_from[sender] > 0 || contains(plan.manifest_keepers(layout, sender), rank)))
      from.push_back(sender);
  BELAY_ASSIGN(const auto received, group.exchange(out, from));
  std::vector<KeptCopies::Source> sources;
  for (std::size_t i = 0; i < from.size(); ++i) {
    BELAY_ASSIGN(auto source, decode_announcement(from[i], received[i], bytes_from[from[i]]));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<void> CopyExchange::move_blocks(const std::vector<KeptCopies::Source>& sources,
                                       const dedup::Rounds& rounds, ExchangeWindows& windows,
                                       const Arrived& arrived,
                                       const std::function<void()>& wait) const {
  const BlockRoutes routes(*this, sources, rounds);
  if (routes.rounds() == 0) return {};
  BELAY_TRY(windows.provide(group, routes.needed()));
  std::array<std::atomic<bool>, ExchangeWindows::kCount> is_free{true, true};
  Result<void> moved;
  for (std::uint64_t round = 0; round < routes.rounds() && moved; ++round) {
    const std::size_t turn = round % ExchangeWindows::kCount;
    while (!is_free[turn].load(std::memory_order_acquire)) wait();
    ranks::Window& window = windows.window(turn);
    moved = window.put(routes.puts(round), routes.landings(round));
    auto arrivals = routes.arrivals(round, window.bytes());
    if (!moved || arrivals.empty()) continue;
    is_free[turn].store(false, std::memory_order_release);
    arrived(std::move(arrivals), is_free[turn]);
  }
  for (const auto& free : is_free)
    while (!free.load(std::memory_order_acquire)) wait();
  return moved;
}

}  // namespace belay::session
