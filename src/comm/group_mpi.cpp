// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/mpi_group.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace belay::ranks {
namespace {

// MPI counts in int, and a round needs this much memory besides the caller's.
constexpr std::uint64_t kRoundBytes = 16u << 20;

constexpr int kSpins = 300;
constexpr int kYields = 50;
constexpr std::uint64_t kShortestSleep_ns = 10'000;
constexpr std::uint64_t kLongestSleep_ns = 200'000;

/// All that MPI reads and writes on its own while an operation is pending.
struct Operation {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm duplicate = MPI_COMM_NULL;
  std::vector<std::uint64_t> words;
  std::vector<std::byte> bytes;
  std::vector<int> counts;
  std::vector<int> offsets;
};

class Deadline {
 public:
  Deadline(os::Clock& clock, std::uint64_t timeout_ns)
      : clock_(clock), timeout_ns_(timeout_ns), start_ns_(clock.now_ns()) {}

  bool passed() const { return clock_.now_ns() - start_ns_ >= timeout_ns_; }
  void sleep_ns(std::uint64_t time_ns) const { clock_.sleep_ns(time_ns); }
  std::uint64_t timeout_ms() const { return timeout_ns_ / 1'000'000; }

 private:
  os::Clock& clock_;
  std::uint64_t timeout_ns_;
  std::uint64_t start_ns_;
};

/// Polls until the operation is complete. After an error it may still be pending.
Result<void> await(Operation& operation, const Deadline& deadline, const std::string& call) {
  std::uint64_t sleep_ns = kShortestSleep_ns;
  for (int tries = 0;; ++tries) {
    int done = 0;
    if (const int error = MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE);
        error != MPI_SUCCESS)
      return Unexpected(mpi_error(call, error));
    if (done) return {};
    if (tries < kSpins) continue;
    if (deadline.passed())
      return fail(Code::peer_lost,
                  "{}: a peer did not answer within {} ms: it has ended, hangs, or is slower than "
                  "that; raise timeout (BELAY_TIMEOUT) if it is only slow",
                  call, deadline.timeout_ms());
    if (tries < kSpins + kYields) {
      sched_yield();
    } else {
      deadline.sleep_ns(sleep_ns);
      sleep_ns = std::min(sleep_ns * 5 / 4, kLongestSleep_ns);
    }
  }
}

/// Awaits what `started`, the return code of the MPI call, has begun.
Result<void> complete(int started, std::unique_ptr<Operation>& operation, const Deadline& deadline,
                      const std::string& call) {
  auto done = started == MPI_SUCCESS ? await(*operation, deadline, call)
                                     : Result<void>(Unexpected(mpi_error(call, started)));
  // A collective cannot be cancelled: if the peer turns up after all, MPI goes on reading and
  // writing these buffers, whenever the program next calls it. So they are given up, never freed.
  if (!done) static_cast<void>(operation.release());
  return done;
}

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

/// MPI_Finalized may be called at any time; most else aborts the program once MPI is gone.
Result<void> check_not_finalized() {
  int finalized = 0;
  if (const int error = MPI_Finalized(&finalized); error != MPI_SUCCESS)
    return fail(Code::invalid_argument, "MPI_Finalized failed with code {}", error);
  if (finalized)
    return fail(Code::invalid_argument,
                "MPI is finalized: close() the session before MPI_Finalize");
  return {};
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

Result<MPI_Comm> duplicate(MPI_Comm communicator, const Deadline& deadline) {
  auto operation = std::make_unique<Operation>();
  const int started = MPI_Comm_idup(communicator, &operation->duplicate, &operation->request);
  BELAY_TRY(complete(started, operation, deadline, "duplicate the communicator"));
  // Set here only: the caller's communicator keeps the handler that the program chose.
  if (const int error = MPI_Comm_set_errhandler(operation->duplicate, MPI_ERRORS_RETURN);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_set_errhandler", error));
  return operation->duplicate;
}

class DuplicateGroup : public MpiGroup {
 public:
  DuplicateGroup(MPI_Comm communicator, MPI_Comm duplicate, Rank rank, Rank size,
                 std::uint64_t timeout_ns, os::Clock& clock)
      : communicator_(communicator),
        duplicate_(duplicate),
        rank_(rank),
        size_(size),
        timeout_ns_(timeout_ns),
        clock_(clock) {}

  Rank rank() const override { return rank_; }
  Rank size() const override { return size_; }
  MPI_Comm communicator() const override { return communicator_; }

  Result<void> reduce(std::span<std::uint64_t> values, Reduction reduction) override {
    const std::string call = "reduce";
    BELAY_TRY(check_usable(call));
    const Deadline deadline(clock_, timeout_ns_);
    constexpr std::size_t kRoundWords = kRoundBytes / sizeof(std::uint64_t);
    for (std::size_t first = 0; first < values.size(); first += kRoundWords) {
      const auto part = values.subspan(first, std::min(kRoundWords, values.size() - first));
      auto operation = std::make_unique<Operation>();
      operation->words.assign(part.begin(), part.end());
      const int started =
          MPI_Iallreduce(MPI_IN_PLACE, operation->words.data(), static_cast<int>(part.size()),
                         MPI_UINT64_T, operation_of(reduction), duplicate_, &operation->request);
      BELAY_TRY(finish(started, operation, deadline, call));
      std::copy(operation->words.begin(), operation->words.end(), part.begin());
    }
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override {
    const std::string call = "gather";
    BELAY_TRY(check_usable(call));
    const Deadline deadline(clock_, timeout_ns_);
    BELAY_ASSIGN(const std::vector<std::uint64_t> lengths,
                 gather_lengths(mine.size(), deadline, call));
    std::vector<std::vector<std::byte>> all(size_);
    for (Rank rank = 0; rank < size_; ++rank) all[rank].reserve(lengths[rank]);
    const std::uint64_t longest = *std::max_element(lengths.begin(), lengths.end());
    const std::uint64_t share = std::max<std::uint64_t>(1, kRoundBytes / size_);
    for (std::uint64_t first = 0; first < longest; first += share)
      BELAY_TRY(gather_round(mine, lengths, {first, share}, deadline, all));
    return all;
  }

  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    const std::string call = "broadcast";
    BELAY_TRY(check_usable(call));
    if (root >= size_)
      return fail(Code::invalid_argument, "broadcast from rank {}: the group has {} ranks", root,
                  size_);
    const Deadline deadline(clock_, timeout_ns_);
    for (std::size_t first = 0; first < bytes.size(); first += kRoundBytes) {
      const auto part = bytes.subspan(first, std::min(kRoundBytes, bytes.size() - first));
      auto operation = std::make_unique<Operation>();
      operation->bytes.assign(part.begin(), part.end());
      const int started =
          MPI_Ibcast(operation->bytes.data(), static_cast<int>(part.size()), MPI_BYTE,
                     static_cast<int>(root), duplicate_, &operation->request);
      BELAY_TRY(finish(started, operation, deadline, call));
      std::copy(operation->bytes.begin(), operation->bytes.end(), part.begin());
    }
    return {};
  }

  Result<void> close() override {
    const std::string call = "close";
    BELAY_TRY(check_usable(call));
    const Deadline deadline(clock_, timeout_ns_);
    // MPI_Comm_free may wait for all ranks without a deadline, so they meet here first.
    auto operation = std::make_unique<Operation>();
    const int started = MPI_Ibarrier(duplicate_, &operation->request);
    BELAY_TRY(finish(started, operation, deadline, call));
    ended_ = Error(Code::invalid_argument, "the group is closed");
    if (const int error = MPI_Comm_free(&duplicate_); error != MPI_SUCCESS)
      return Unexpected(mpi_error("MPI_Comm_free", error));
    return {};
  }

 private:
  struct Slice {
    std::uint64_t first;
    std::uint64_t share;  ///< bytes of each rank
  };

  Result<void> check_usable(const std::string& call) const {
    if (ended_) return Unexpected(ended_->within(call));
    return within(call, check_not_finalized());
  }

  /// After any failure the ranks may be out of step, so that one failure ends the group.
  Result<void> finish(int started, std::unique_ptr<Operation>& operation, const Deadline& deadline,
                      const std::string& call) {
    auto done = complete(started, operation, deadline, call);
    if (!done)
      ended_ = Error(Code::peer_lost, "the group is broken since " + done.error().message());
    return done;
  }

  Result<std::vector<std::uint64_t>> gather_lengths(std::uint64_t mine, const Deadline& deadline,
                                                    const std::string& call) {
    auto operation = std::make_unique<Operation>();
    operation->words.resize(size_);
    operation->words[rank_] = mine;
    const int started = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation->words.data(),
                                       1, MPI_UINT64_T, duplicate_, &operation->request);
    BELAY_TRY(finish(started, operation, deadline, call));
    return std::move(operation->words);
  }

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
    if (const auto count = static_cast<std::size_t>(operation->counts[rank_]); count > 0) {
      const auto part = mine.subspan(slice.first, count);
      std::copy(part.begin(), part.end(), operation->bytes.begin() + operation->offsets[rank_]);
    }
    const int started = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation->bytes.data(),
                                        operation->counts.data(), operation->offsets.data(),
                                        MPI_BYTE, duplicate_, &operation->request);
    BELAY_TRY(finish(started, operation, deadline, "gather"));
    for (Rank rank = 0; rank < size_; ++rank) {
      const auto from = operation->bytes.begin() + operation->offsets[rank];
      all[rank].insert(all[rank].end(), from, from + operation->counts[rank]);
    }
    return {};
  }

  const MPI_Comm communicator_;
  MPI_Comm duplicate_;
  const Rank rank_;
  const Rank size_;
  const std::uint64_t timeout_ns_;
  os::Clock& clock_;
  std::optional<Error> ended_;  ///< why no further call is made: broken, or closed
};

Code code_of(int error_class) {
  switch (error_class) {
    case MPI_ERR_NO_MEM:
      return Code::no_space;
    case MPI_ERR_UNSUPPORTED_OPERATION:
      return Code::unsupported;
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_OP:
    case MPI_ERR_RANK:
    case MPI_ERR_REQUEST:
    case MPI_ERR_ROOT:
    case MPI_ERR_TRUNCATE:
    case MPI_ERR_TYPE:
      return Code::invalid_argument;
    default:
      return Code::peer_lost;
  }
}

}  // namespace

Error mpi_error(const std::string& call, int error) {
  int error_class = MPI_ERR_UNKNOWN;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_class(error, &error_class) != MPI_SUCCESS ||
      MPI_Error_string(error, text.data(), &length) != MPI_SUCCESS)
    return {Code::peer_lost, fmt::format("{}: MPI failed with code {}", call, error)};
  return {code_of(error_class),
          fmt::format("{}: MPI: {} (class {})", call, text.data(), error_class)};
}

Result<std::unique_ptr<Group>> make_mpi_group(MPI_Comm communicator, std::uint64_t timeout_ns,
                                              os::Clock& clock) {
  BELAY_TRY(check_communicator(communicator));
  BELAY_ASSIGN(const MPI_Comm duplicated, duplicate(communicator, Deadline(clock, timeout_ns)));
  int rank = 0;
  int size = 0;
  if (const int error = MPI_Comm_rank(duplicated, &rank); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_rank", error));
  if (const int error = MPI_Comm_size(duplicated, &size); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_size", error));
  return std::unique_ptr<Group>(
      std::make_unique<DuplicateGroup>(communicator, duplicated, static_cast<Rank>(rank),
                                       static_cast<Rank>(size), timeout_ns, clock));
}

}  // namespace belay::ranks
