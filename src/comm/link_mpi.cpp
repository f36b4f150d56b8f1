// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/mpi_link.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <utility>

namespace belay::ranks {
namespace {

constexpr int kSpins = 20;
constexpr int kYields = 50;
constexpr std::uint64_t kShortestSleep_ns = 10'000;
constexpr std::uint64_t kLongestSleep_ns = 200'000;

/// Polls until the operation is complete. After an error it may still be pending.
Result<void> await(Operation& operation, const Deadline& deadline, const std::string& call) {
  Pauses pauses(deadline);
  for (;;) {
    int done = 0;
    if (const int error = MPI_Test(&operation.request, &done, MPI_STATUS_IGNORE);
        error != MPI_SUCCESS)
      return Unexpected(mpi_error(call, error));
    if (done) return {};
    BELAY_TRY(pauses.pause(call));
  }
}

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

Result<void> check_not_finalized() {
  int finalized = 0;
  if (const int error = MPI_Finalized(&finalized); error != MPI_SUCCESS)
    return fail(Code::invalid_argument, "MPI_Finalized failed with code {}", error);
  if (finalized)
    return fail(Code::invalid_argument,
                "MPI is finalized: close() the session before MPI_Finalize");
  return {};
}

Result<void> Pauses::pause(const std::string& call) {
  if (++looks_ <= kSpins) return {};
  if (deadline_.passed())
    return fail(Code::peer_lost,
                "{}: a peer did not answer within {} ms: it has ended, hangs, or is slower than "
                "that; raise timeout (BELAY_TIMEOUT) if it is only slow",
                call, deadline_.timeout_ms());
  if (looks_ <= kSpins + kYields) {
    sched_yield();
  } else {
    sleep_ns_ = std::clamp(sleep_ns_ * 5 / 4, kShortestSleep_ns, kLongestSleep_ns);
    deadline_.sleep_ns(sleep_ns_);
  }
  return {};
}

void Pauses::restart() {
  looks_ = 0;
  sleep_ns_ = 0;
}

Result<void> complete(int started, std::unique_ptr<Operation>& operation, const Deadline& deadline,
                      const std::string& call) {
  auto done = started == MPI_SUCCESS ? await(*operation, deadline, call)
                                     : Result<void>(Unexpected(mpi_error(call, started)));
  // A collective cannot be cancelled: if the peer turns up after all, MPI goes on reading and
  // writing these buffers, whenever the program next calls it. So they are given up, never freed.
  if (!done) static_cast<void>(operation.release());
  return done;
}

Result<MPI_Comm> duplicate_communicator(MPI_Comm communicator, const Deadline& deadline) {
  auto operation = std::make_unique<Operation>();
  const int started = MPI_Comm_idup(communicator, &operation->duplicate, &operation->request);
  BELAY_TRY(complete(started, operation, deadline, "duplicate the communicator"));
  // Set here only: the caller's communicator keeps the handler that the program chose.
  if (const int error = MPI_Comm_set_errhandler(operation->duplicate, MPI_ERRORS_RETURN);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_set_errhandler", error));
  return operation->duplicate;
}

Result<void> Link::check_usable(const std::string& call) const {
  if (ended_) return Unexpected(ended_->within(call));
  return within(call, check_not_finalized());
}

void Link::break_off(const Error& error) {
  ended_ = Error(Code::peer_lost, "the group is broken since " + error.message());
}

Result<void> Link::finish(int started, std::unique_ptr<Operation>& operation,
                          const Deadline& deadline, const std::string& call) {
  auto done = complete(started, operation, deadline, call);
  if (!done) break_off(done.error());
  return done;
}

Result<void> Link::meet(const Deadline& deadline, const std::string& call) {
  auto operation = std::make_unique<Operation>();
  const int started = MPI_Ibarrier(communicator_, &operation->request);
  return finish(started, operation, deadline, call);
}

Result<std::uint64_t> Link::largest(std::uint64_t mine, const Deadline& deadline,
                                    const std::string& call) {
  auto operation = std::make_unique<Operation>();
  operation->words = {mine};
  const int started = MPI_Iallreduce(MPI_IN_PLACE, operation->words.data(), 1, MPI_UINT64_T,
                                     MPI_MAX, communicator_, &operation->request);
  BELAY_TRY(finish(started, operation, deadline, call));
  return operation->words[0];
}

Result<std::vector<std::uint64_t>> Link::gather_words(std::uint64_t mine, const Deadline& deadline,
                                                      const std::string& call) {
  auto operation = std::make_unique<Operation>();
  operation->words.resize(size_);
  operation->words[rank_] = mine;
  const int started = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, operation->words.data(), 1,
                                     MPI_UINT64_T, communicator_, &operation->request);
  BELAY_TRY(finish(started, operation, deadline, call));
  return std::move(operation->words);
}

Result<void> Link::close() {
  BELAY_TRY(check_usable("close"));
  // MPI_Comm_free may wait for all ranks without a deadline, so they meet here first.
  BELAY_TRY(meet(deadline(), "close"));
  ended_ = Error(Code::invalid_argument, "the group is closed");
  owned_.push_back(communicator_);
  for (MPI_Comm& communicator : owned_)
    if (const int error = MPI_Comm_free(&communicator); error != MPI_SUCCESS)
      return Unexpected(mpi_error("MPI_Comm_free", error));
  return {};
}

}  // namespace belay::ranks
