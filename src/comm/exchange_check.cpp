// SPDX-License-Identifier: Apache-2.0
#include "comm/exchange_check.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::ranks {
namespace {

Result<void> check_peers(std::vector<Rank> peers, Rank size, const char* way) {
  std::sort(peers.begin(), peers.end());
  if (!peers.empty() && peers.back() >= size)
    return fail(Code::invalid_argument, "exchange: a message {} rank {}: the group has {} ranks",
                way, peers.back(), size);
  if (const auto twice = std::adjacent_find(peers.begin(), peers.end()); twice != peers.end())
    return fail(Code::invalid_argument,
                "exchange: two messages {} rank {}: make one of them, or two calls", way, *twice);
  return {};
}

Result<void> check_place(std::uint64_t offset, std::uint64_t bytes, std::uint64_t window,
                         const char* what, Rank rank) {
  if (offset > window || bytes > window - offset)
    return fail(Code::invalid_argument,
                "put: {} rank {}: {} bytes at {} do not fit into a window of {} bytes", what, rank,
                bytes, offset, window);
  return {};
}

}  // namespace

Result<void> check_exchange(Rank rank, Rank size, std::span<const Message> out,
                            std::span<const Rank> from) {
  std::vector<Rank> targets;
  for (const Message& message : out) targets.push_back(message.peer);
  const bool sends = std::find(targets.begin(), targets.end(), rank) != targets.end();
  const bool receives = std::find(from.begin(), from.end(), rank) != from.end();
  BELAY_TRY(check_peers(std::move(targets), size, "to"));
  BELAY_TRY(check_peers({from.begin(), from.end()}, size, "from"));
  if (sends != receives)
    return fail(Code::invalid_argument,
                "exchange: rank {} {} itself without the other half in the same call", rank,
                sends ? "sends to" : "receives from");
  return {};
}

Result<void> check_round(Rank rank, std::span<const Put> puts, std::span<const Landing> landings,
                         std::span<const std::uint64_t> windows) {
  for (const Put& put : puts) {
    if (put.target >= windows.size())
      return fail(Code::invalid_argument, "put: to rank {}: the group has {} ranks", put.target,
                  windows.size());
    BELAY_TRY(check_place(put.offset, bytes_of(put), windows[put.target], "to", put.target));
  }
  for (const Landing& landing : landings) {
    if (landing.source >= windows.size())
      return fail(Code::invalid_argument, "put: a landing from rank {}: the group has {} ranks",
                  landing.source, windows.size());
    BELAY_TRY(check_place(landing.offset, landing.bytes, windows[rank], "a landing from",
                          landing.source));
  }
  return {};
}

std::uint64_t bytes_of(const Put& put) {
  std::uint64_t bytes = 0;
  for (const auto& piece : put.pieces) bytes += piece.size();
  return bytes;
}

}  // namespace belay::ranks
