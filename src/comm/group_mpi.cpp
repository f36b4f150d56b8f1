// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/mpi_group.hpp"
#include "comm/mpi_link.hpp"
#include "comm/mpi_transfer.hpp"
#include "comm/mpi_window.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace belay::ranks {
namespace {

MPI_Op operation_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::bit_or:
      return MPI_BOR;
  }
  return MPI_OP_NULL;
}

Result<void> check_communicator(MPI_Comm communicator) {
  int initialized = 0;
  if (const int error = MPI_Initialized(&initialized); error != MPI_SUCCESS)
    return fail(Code::invalid_argument, "MPI_Initialized failed with code {}", error);
  if (!initialized)
    return fail(Code::invalid_argument,
                "MPI is not initialized: call MPI_Init first, or open without a communicator");
  BELAY_TRY(check_not_finalized());
  if (communicator == MPI_COMM_NULL)
    return fail(Code::invalid_argument,
                "the communicator is MPI_COMM_NULL: open on the ranks that belong to it only");
  int inter = 0;
  if (const int error = MPI_Comm_test_inter(communicator, &inter); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_test_inter", error));
  if (inter)
    return fail(Code::invalid_argument,
                "this is an intercommunicator: merge it first (MPI_Intercomm_merge)");
  return {};
}

class LinkGroup : public MpiGroup {
 public:
  LinkGroup(MPI_Comm communicator, std::shared_ptr<Link> link, Rank most_neighbours)
      : communicator_(communicator), link_(std::move(link)), most_neighbours_(most_neighbours) {}

  Rank rank() const override { return link_->rank(); }
  Rank size() const override { return link_->size(); }
  MPI_Comm communicator() const override { return communicator_; }

  Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const std::string call = "reduce";
    BELAY_TRY(link_->check_usable(call));
    const Deadline deadline = link_->deadline();
    constexpr std::size_t kRoundWords = kRoundBytes / sizeof(std::uint64_t);
    for (std::size_t first = 0; first < values.size(); first += kRoundWords) {
      const auto part = values.subspan(first, std::min(kRoundWords, values.size() - first));
      auto operation = std::make_unique<Operation>();
      operation->words.assign(part.begin(), part.end());
      const int started = MPI_Iallreduce(
          MPI_IN_PLACE, operation->words.data(), static_cast<int>(part.size()), MPI_UINT64_T,
          operation_of(reduction), link_->communicator(), &operation->request);
      BELAY_TRY(link_->finish(started, operation, deadline, call));
      std::copy(operation->words.begin(), operation->words.end(), part.begin());
    }
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override {
    const std::string call = "gather";
    BELAY_TRY(link_->check_usable(call));
    const Deadline deadline = link_->deadline();
    BELAY_ASSIGN(const std::vector<std::uint64_t> lengths,
                 link_->gather_words(mine.size(), deadline, call));
    std::vector<std::vector<std::byte>> all(size());
    for (Rank rank = 0; rank < size(); ++rank) all[rank].reserve(lengths[rank]);
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const std::uint64_t share = std::max<std::uint64_t>(1, kRoundBytes / size());
    for (std::uint64_t first = 0; first < longest; first += share)
      BELAY_TRY(gather_round(mine, lengths, {first, share}, deadline, all));
    return all;
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    const std::string call = "broadcast";
    BELAY_TRY(link_->check_usable(call));
    if (root >= size())
      return fail(Code::invalid_argument, "broadcast from rank {}: the group has {} ranks", root,
                  size());
    const Deadline deadline = link_->deadline();
    for (std::size_t first = 0; first < bytes.size(); first += kRoundBytes) {
      const auto part = bytes.subspan(first, std::min(kRoundBytes, bytes.size() - first));
      auto operation = std::make_unique<Operation>();
      operation->bytes.assign(part.begin(), part.end());
      const int started =
          MPI_Ibcast(operation->bytes.data(), static_cast<int>(part.size()), MPI_BYTE,
                     static_cast<int>(root), link_->communicator(), &operation->request);
      BELAY_TRY(link_->finish(started, operation, deadline, call));
      std::copy(operation->bytes.begin(), operation->bytes.end(), part.begin());
    }
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> exchange(std::span<const Message> out,
                                                       std::span<const Rank> from) override {
    return exchange_messages(*link_, out, from);
  }

  Result<std::unique_ptr<Window>> open_window(std::uint64_t bytes) override {
    BELAY_TRY(link_->check_usable("open a window"));
    if (!neighbours_) {
      // Asked for here, as few groups open windows, and it blocks: all are known to be there.
      BELAY_TRY(link_->meet(link_->deadline(), "open a window"));
      auto found = find_neighbours(*link_, most_neighbours_);
      if (!found) {
        link_->break_off(found.error());
        return Unexpected(std::move(found).error());
      }
      neighbours_ = *std::move(found);
    }
    return open_mpi_window(link_, *neighbours_, bytes);
  }

  Result<std::unique_ptr<Group>> duplicate() override;
  Result<std::unique_ptr<Group>> subset(std::span<const Rank> members) override;
  Result<void> close() override { return link_->close(); }

 private:
  struct Slice {
    std::uint64_t first;
    std::uint64_t share;  ///< bytes of each rank
  };

  /// Appends to `all` the slice of every rank's bytes.
  Result<void> gather_round(std::span<const std::byte> mine,
                            const std::vector<std::uint64_t>& lengths, Slice slice,
                            const Deadline& deadline, std::vector<std::vector<std::byte>>& all) {
    auto operation = std::make_unique<Operation>();
    int total = 0;
    for (const std::uint64_t length : lengths) {
      const std::uint64_t left = length - std::min(length, slice.first);
      operation->offsets.push_back(total);
      operation->counts.push_back(static_cast<int>(std::min(left, slice.share)));
      total += operation->counts.back();
    }
    operation->bytes.resize(static_cast<std::size_t>(total));
    if (const auto count = static_cast<std::size_t>(operation->counts[rank()]); count > 0) {
      const auto part = mine.subspan(slice.first, count);
      std::copy(part.begin(), part.end(), operation->bytes.begin() + operation->offsets[rank()]);
    }
    const int started = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation->bytes.data(),
                                        operation->counts.data(), operation->offsets.data(),
                                        MPI_BYTE, link_->communicator(), &operation->request);
    BELAY_TRY(link_->finish(started, operation, deadline, "gather"));
    for (Rank rank = 0; rank < size(); ++rank) {
      const auto from = operation->bytes.begin() + operation->offsets[rank];
      all[rank].insert(all[rank].end(), from, from + operation->counts[rank]);
    }
    return {};
  }

  const MPI_Comm communicator_;
  const std::shared_ptr<Link> link_;
  const Rank most_neighbours_;
  std::optional<Neighbours> neighbours_;  ///< once a window was opened
};

/// Collective: a link over a duplicate of `communicator`.
Result<std::shared_ptr<Link>> make_link(MPI_Comm communicator, std::uint64_t timeout_ns,
                                        os::Clock& clock) {
  BELAY_ASSIGN(const MPI_Comm own,
               duplicate_communicator(communicator, Deadline(clock, timeout_ns)));
  int rank = 0;
  int size = 0;
  if (const int error = MPI_Comm_rank(own, &rank); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_rank", error));
  if (const int error = MPI_Comm_size(own, &size); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_size", error));
  return std::make_shared<Link>(own, static_cast<Rank>(rank), static_cast<Rank>(size), timeout_ns,
                                clock);
}

Result<std::unique_ptr<Group>> LinkGroup::duplicate() {
  const std::string call = "duplicate";
  BELAY_TRY(link_->check_usable(call));
  int provided = MPI_THREAD_SINGLE;
  const bool asked = MPI_Query_thread(&provided) == MPI_SUCCESS;
  const bool several = asked && provided == MPI_THREAD_MULTIPLE;
  BELAY_ASSIGN(const std::uint64_t lacking,
               link_->largest(several ? 0 : rank() + 1, link_->deadline(), call));
  if (lacking > 0)
    return fail(Code::unsupported,
                "{}: on rank {} MPI may be called by one thread at a time only; call "
                "MPI_Init_thread and ask for MPI_THREAD_MULTIPLE",
                call, lacking - 1);
  auto second = make_link(link_->communicator(), link_->timeout_ns(), link_->clock());
  if (!second) {
    link_->break_off(second.error());
    return Unexpected(std::move(second).error());
  }
  return std::unique_ptr<Group>(
      std::make_unique<LinkGroup>(communicator_, *std::move(second), most_neighbours_));
}

Result<std::unique_ptr<Group>> LinkGroup::subset(std::span<const Rank> members) {
  const std::string call = "subset";
  BELAY_TRY(link_->check_usable(call));
  BELAY_TRY(link_->meet(link_->deadline(), call));  // what follows blocks: all are there
  const auto place = std::find(members.begin(), members.end(), rank()) - members.begin();
  // Of the caller's communicator, so that programs find their error handler on it.
  MPI_Comm visible = MPI_COMM_NULL;
  const int error = MPI_Comm_split(communicator_, static_cast<int>(members.front()),
                                   static_cast<int>(place), &visible);
  if (error != MPI_SUCCESS) {
    link_->break_off(mpi_error(call, error));
    return Unexpected(mpi_error(call, error));
  }
  auto own = make_link(visible, link_->timeout_ns(), link_->clock());
  if (!own) {
    link_->break_off(own.error());
    return Unexpected(std::move(own).error());
  }
  (*own)->own(visible);
  return std::unique_ptr<Group>(
      std::make_unique<LinkGroup>(visible, *std::move(own), most_neighbours_));
}

}  // namespace

Result<std::unique_ptr<Group>> make_mpi_group(MPI_Comm communicator, std::uint64_t timeout_ns,
                                              os::Clock& clock, Rank most_neighbours) {
  BELAY_TRY(check_communicator(communicator));
  BELAY_ASSIGN(std::shared_ptr<Link> link, make_link(communicator, timeout_ns, clock));
  return std::unique_ptr<Group>(
      std::make_unique<LinkGroup>(communicator, std::move(link), most_neighbours));
}

}  // namespace belay::ranks
