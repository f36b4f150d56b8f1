// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/mpi_transfer.hpp"
#include "comm/mpi_window.hpp"
#include "comm/mpi_window_memory.hpp"
#include "os/memory.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace belay::ranks {
namespace {

constexpr int kPutTag = 3;

/// The window of another rank, or of this one, in the memory of this process.
class Reach {
 public:
  Reach() = default;
  explicit Reach(std::byte* place) : place_(place) {}

  /// False: it cannot be written to from here.
  explicit operator bool() const { return place_ != nullptr; }

  void write(const Put& put) {
    map(put.offset, bytes_of(put));
    std::byte* to = place_ + put.offset;
    for (const auto& piece : put.pieces) {
      os::copy_past_cache(to, piece.data(), piece.size());
      to += piece.size();
    }
  }

 private:
  /// The memory is real since its owner made it so, but the first write to each of its pages from
  /// another process still costs a fault, which takes longer than to copy the page. All at once
  /// they take a third of that. An error only means that they are taken one by one.
  void map(std::uint64_t offset, std::uint64_t bytes) {
    constexpr std::uint64_t kWorthwhile = 64u << 10;
    if (bytes < kWorthwhile || (offset >= mapped_from_ && offset + bytes <= mapped_to_)) return;
    static_cast<void>(os::populate({place_ + offset, bytes}));
    const bool apart = offset > mapped_to_ || offset + bytes < mapped_from_;
    mapped_from_ = apart ? offset : std::min(mapped_from_, offset);
    mapped_to_ = apart ? offset + bytes : std::max(mapped_to_, offset + bytes);
  }

  std::byte* place_ = nullptr;
  std::uint64_t mapped_from_ = 0;
  std::uint64_t mapped_to_ = 0;
};

class MpiWindow : public Window {
 public:
  MpiWindow(std::shared_ptr<Link> link, WindowMemory memory, std::vector<std::uint64_t> windows,
            std::vector<Reach> reaches)
      : link_(std::move(link)),
        memory_(std::move(memory)),
        windows_(std::move(windows)),
        reaches_(std::move(reaches)),
        transfer_(*link_) {}

  std::span<std::byte> bytes() override { return memory_.bytes(); }

  Result<void> put(std::span<const Put> puts, std::span<const Landing> landings) override {
    const std::string call = "put";
    BELAY_TRY(check_usable(call));
    const auto checked = check_round(link_->rank(), puts, landings, windows_);
    BELAY_TRY(memory_.sync());
    // All have used up what the last round brought, and know whether anybody is at fault.
    BELAY_ASSIGN(const std::uint64_t wrong,
                 link_->largest(checked ? 0 : link_->rank() + 1, link_->deadline(), call));
    BELAY_TRY(checked);
    if (wrong > 0)
      return fail(Code::invalid_argument, "put: the arguments of rank {} are wrong", wrong - 1);
    auto moved = move(puts, landings, call);
    if (!moved) memory_.give_up();
    return moved;
  }

  Result<void> close() override {
    const std::string call = "close the window";
    BELAY_TRY(check_usable(call));
    // MPI_Win_free may wait for all neighbours without a deadline, so they meet here first.
    BELAY_TRY(link_->meet(link_->deadline(), call));
    closed_ = true;
    return memory_.free();
  }

 private:
  Result<void> check_usable(const std::string& call) const {
    if (closed_) return fail(Code::invalid_argument, "{}: the window is closed", call);
    return link_->check_usable(call);
  }

  Result<void> move(std::span<const Put> puts, std::span<const Landing> landings,
                    const std::string& call) {
    Shipment shipment{.sends = {}, .arrivals = {}, .tag = kPutTag};
    for (const Put& put : puts)
      if (!reaches_[put.target]) shipment.sends.push_back(&put);
    for (const Landing& landing : landings)
      if (!reaches_[landing.source])
        shipment.arrivals.push_back(
            {landing.source, memory_.bytes().subspan(landing.offset, landing.bytes)});
    BELAY_TRY(transfer_.start(shipment, call));
    for (const Put& put : puts)
      if (Reach& reach = reaches_[put.target]) reach.write(put);
    BELAY_TRY(transfer_.finish());
    BELAY_TRY(memory_.sync());
    BELAY_TRY(link_->meet(link_->deadline(), call));
    return memory_.sync();
  }

  const std::shared_ptr<Link> link_;
  WindowMemory memory_;
  const std::vector<std::uint64_t> windows_;  ///< the sizes of all ranks' windows
  std::vector<Reach> reaches_;                ///< by rank
  Transfer transfer_;
  bool closed_ = false;
};

/// The error of this rank, or that there is one elsewhere.
Result<void> agree(Link& link, const Result<void>& mine, const std::string& call) {
  BELAY_ASSIGN(const std::uint64_t failed,
               link.largest(mine ? 0 : link.rank() + 1, link.deadline(), call));
  if (!mine) return Unexpected(mine.error().within(call));
  if (failed > 0) return fail(Code::no_space, "{}: rank {} has no room for it", call, failed - 1);
  return {};
}

Result<std::vector<Reach>> find_reaches(const Link& link, const Neighbours& neighbours,
                                        WindowMemory& memory,
                                        const std::vector<std::uint64_t>& skipped) {
  std::vector<Reach> reaches(link.size());
  for (std::size_t i = 0; i < neighbours.ranks.size(); ++i) {
    const Rank rank = neighbours.ranks[i];
    BELAY_ASSIGN(std::byte * place, memory.place_of(static_cast<int>(i), skipped[rank]));
    reaches[rank] = Reach(place);
  }
  reaches[link.rank()] = Reach(memory.bytes().data());
  return reaches;
}

}  // namespace

Result<std::unique_ptr<Window>> open_mpi_window(const std::shared_ptr<Link>& link,
                                                const Neighbours& neighbours, std::uint64_t bytes) {
  const std::string call = "open a window";
  BELAY_ASSIGN(auto windows, link->gather_words(bytes, link->deadline(), call));
  BELAY_TRY(agree(*link, check_room(neighbours, windows), call));
  auto memory = WindowMemory::allocate(neighbours, bytes);
  BELAY_TRY(agree(*link, memory ? Result<void>() : Unexpected(memory.error()), call));
  if (auto agreed = agree(*link, os::populate(memory->bytes()), call); !agreed) {
    BELAY_TRY(memory->free());
    return Unexpected(std::move(agreed).error());
  }
  BELAY_ASSIGN(const auto skipped,
               link->gather_words(memory->skipped_bytes(), link->deadline(), call));
  BELAY_ASSIGN(auto reaches, find_reaches(*link, neighbours, *memory, skipped));
  return std::unique_ptr<Window>(std::make_unique<MpiWindow>(
      link, *std::move(memory), std::move(windows), std::move(reaches)));
}

}  // namespace belay::ranks
