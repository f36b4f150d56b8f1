// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/mpi_transfer.hpp"

#include <utility>

namespace belay::ranks {
namespace {

constexpr int kLengthTag = 1;
constexpr int kMessageTag = 2;

/// What MPI writes into: given up, not freed, if it may still do so.
struct Inbox {
  std::vector<std::uint64_t> lengths;
  std::vector<std::vector<std::byte>> messages;
};

Result<void> ship(Transfer& transfer, const std::vector<Put>& sends, std::vector<Arrival> arrivals,
                  int tag) {
  Shipment shipment{.sends = {}, .arrivals = std::move(arrivals), .tag = tag};
  for (const Put& put : sends) shipment.sends.push_back(&put);
  BELAY_TRY(transfer.start(shipment, "exchange"));
  return transfer.finish();
}

/// Tells every receiver how long its message is.
Result<void> exchange_lengths(Transfer& transfer, Rank rank, std::span<const Message> out,
                              std::span<const Rank> from, Inbox& inbox) {
  std::vector<std::uint64_t> lengths;
  for (const Message& message : out) lengths.push_back(message.bytes.size());
  std::vector<Put> sends;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].peer != rank)
      sends.push_back({out[i].peer, 0, {std::as_bytes(std::span(&lengths[i], 1))}});
  inbox.lengths.resize(from.size());
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != rank)
      arrivals.push_back({from[i], std::as_writable_bytes(std::span(&inbox.lengths[i], 1))});
  return ship(transfer, sends, std::move(arrivals), kLengthTag);
}

Result<void> exchange_bytes(Transfer& transfer, Rank rank, std::span<const Message> out,
                            std::span<const Rank> from, Inbox& inbox) {
  std::vector<Put> sends;
  for (const Message& message : out)
    if (message.peer != rank) sends.push_back({message.peer, 0, {message.bytes}});
  inbox.messages.resize(from.size());
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == rank) continue;
    inbox.messages[i].resize(inbox.lengths[i]);
    arrivals.push_back({from[i], inbox.messages[i]});
  }
  return ship(transfer, sends, std::move(arrivals), kMessageTag);
}

void keep_own(Rank rank, std::span<const Message> out, std::span<const Rank> from, Inbox& inbox) {
  for (const Message& message : out)
    for (std::size_t i = 0; i < from.size(); ++i)
      if (message.peer == rank && from[i] == rank)
        inbox.messages[i].assign(message.bytes.begin(), message.bytes.end());
}

}  // namespace

Result<std::vector<std::vector<std::byte>>> exchange_messages(Link& link,
                                                              std::span<const Message> out,
                                                              std::span<const Rank> from) {
  BELAY_TRY(link.check_usable("exchange"));
  BELAY_TRY(check_exchange(link.rank(), link.size(), out, from));
  auto inbox = std::make_unique<Inbox>();
  Transfer transfer(link);
  auto done = within_memory([&]() -> Result<void> {
    BELAY_TRY(exchange_lengths(transfer, link.rank(), out, from, *inbox));
    BELAY_TRY(exchange_bytes(transfer, link.rank(), out, from, *inbox));
    keep_own(link.rank(), out, from, *inbox);
    return {};
  });
  if (!done) {
    link.break_off(done.error());
    static_cast<void>(inbox.release());
    return Unexpected(std::move(done).error());
  }
  return std::move(inbox->messages);
}

}  // namespace belay::ranks
