// SPDX-License-Identifier: Apache-2.0
// A communicator of a group's own, and the one way in which anything on it is awaited: polled until
// a deadline, past which the link is broken for good.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "os/clock.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::ranks {

/// MPI counts in int, and a round of a collective needs this much memory besides the caller's.
inline constexpr std::uint64_t kRoundBytes = 16u << 20;

/// The one mapping from MPI's error codes: "call: MPI's text (class)". What MPI does not name more
/// precisely is a failure to reach a peer: peer_lost. REQUIRES: MPI is running.
Error mpi_error(const std::string& call, int error);

/// invalid_argument if MPI is finalized. May be called at any time, as most else may not.
Result<void> check_not_finalized();

class Deadline {
 public:
  Deadline(os::Clock& clock, std::uint64_t timeout_ns)
      : clock_(clock), timeout_ns_(timeout_ns), start_ns_(clock.now_ns()) {}

  /// Starts again from now.
  void renew() { start_ns_ = clock_.now_ns(); }
  bool passed() const { return clock_.now_ns() - start_ns_ >= timeout_ns_; }
  void sleep_ns(std::uint64_t time_ns) const { clock_.sleep_ns(time_ns); }
  std::uint64_t timeout_ms() const { return timeout_ns_ / 1'000'000; }

 private:
  os::Clock& clock_;
  std::uint64_t timeout_ns_;
  std::uint64_t start_ns_;
};

/// The pauses between looks at something that others must do: none at first, then longer ones.
class Pauses {
 public:
  explicit Pauses(const Deadline& deadline) : deadline_(deadline) {}
  /// After a look in vain. peer_lost once the deadline has passed.
  Result<void> pause(const std::string& call);
  /// After a look that was not.
  void restart();

 private:
  const Deadline& deadline_;
  int looks_ = 0;
  std::uint64_t sleep_ns_ = 0;
};

/// All that MPI reads and writes on its own while a collective is pending.
struct Operation {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm duplicate = MPI_COMM_NULL;
  std::vector<std::uint64_t> words;
  std::vector<std::byte> bytes;
  std::vector<int> counts;
  std::vector<int> offsets;
};

/// Awaits what `started`, the return code of the MPI call, has begun. After an error the operation
/// may be pending for ever: then it is given up, and its memory is never freed.
Result<void> complete(int started, std::unique_ptr<Operation>& operation, const Deadline& deadline,
                      const std::string& call);

/// A duplicate of `communicator`, which returns errors. Collective.
Result<MPI_Comm> duplicate_communicator(MPI_Comm communicator, const Deadline& deadline);

/// Shared by a group and its windows; of one thread.
class Link {
 public:
  /// The link owns `communicator`; close() frees it, nothing else does.
  Link(MPI_Comm communicator, Rank rank, Rank size, std::uint64_t timeout_ns, os::Clock& clock)
      : communicator_(communicator),
        rank_(rank),
        size_(size),
        timeout_ns_(timeout_ns),
        clock_(clock) {}

  MPI_Comm communicator() const { return communicator_; }
  Rank rank() const { return rank_; }
  Rank size() const { return size_; }
  std::uint64_t timeout_ns() const { return timeout_ns_; }
  os::Clock& clock() const { return clock_; }
  Deadline deadline() const { return {clock_, timeout_ns_}; }

  /// Why no further call may be made: the link is broken or closed, or MPI is finalized.
  Result<void> check_usable(const std::string& call) const;
  /// complete(), after whose failure the ranks may be out of step: one failure ends the link.
  Result<void> finish(int started, std::unique_ptr<Operation>& operation, const Deadline& deadline,
                      const std::string& call);
  /// Ends the link because of `error`.
  void break_off(const Error& error);
  /// Leaves a communicator made from this one to close().
  void own(MPI_Comm made) { owned_.push_back(made); }

  /// Collectives of which everything else is made.
  Result<void> meet(const Deadline& deadline, const std::string& call);
  Result<std::uint64_t> largest(std::uint64_t mine, const Deadline& deadline,
                                const std::string& call);
  Result<std::vector<std::uint64_t>> gather_words(std::uint64_t mine, const Deadline& deadline,
                                                  const std::string& call);
  Result<void> close();

 private:
  MPI_Comm communicator_;
  const Rank rank_;
  const Rank size_;
  const std::uint64_t timeout_ns_;
  os::Clock& clock_;
  std::optional<Error> ended_;
  std::vector<MPI_Comm> owned_;
};

}  // namespace belay::ranks
