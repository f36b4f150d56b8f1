// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/mpi_window_memory.hpp"
#include "os/files.hpp"

#include <algorithm>
#include <utility>

namespace belay::ranks {
namespace {

constexpr std::uint64_t kPageBytes = 4096;
// No machine has so much, and sums of it do not overflow.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;
// Where Open MPI and MPICH keep memory that processes share.
constexpr const char* kSharedDirectory = "/dev/shm";
// What MPI keeps there for itself: some pages of state for each window.
constexpr std::uint64_t kStateBytes = 1u << 20;

}  // namespace

Result<void> check_room(const Neighbours& neighbours, const std::vector<std::uint64_t>& windows) {
  std::uint64_t needed = kStateBytes;
  for (const Rank rank : neighbours.ranks) {
    if (windows[rank] > kMostBytes)
      return fail(Code::no_space, "rank {}: no memory for a window of {} bytes", rank,
                  windows[rank]);
    needed += windows[rank] + kPageBytes;
  }
  if (neighbours.ranks.size() == 1) return {};
  const auto space = os::posix_files().space(kSharedDirectory);
  // Without the directory MPI uses another, which is its own affair.
  if (!space || space->free_bytes >= needed) return {};
  return fail(Code::no_space,
              "{}: the windows of {} ranks of this host need {} bytes of shared memory, {} are "
              "free; make it larger (mount -o remount,size=... {}; docker run --shm-size) or lower "
              "staging (BELAY_STAGING)",
              kSharedDirectory, neighbours.ranks.size(), needed, space->free_bytes,
              kSharedDirectory);
}

Result<WindowMemory> WindowMemory::allocate(const Neighbours& neighbours, std::uint64_t bytes) {
  WindowMemory memory;
  if (neighbours.ranks.size() == 1) {
    if (bytes == 0) return memory;
    BELAY_ASSIGN(auto alone, os::AlignedMemory::allocate(bytes));
    memory.alone_ = std::make_unique<os::AlignedMemory>(std::move(alone));
    memory.bytes_ = memory.alone_->bytes().first(bytes);
    return memory;
  }
  // Collective and blocking. Nothing else shares memory by means of MPI, and it happens once for
  // many rounds, right after all ranks have met.
  void* begin = nullptr;
  if (const int error =
          MPI_Win_allocate_shared(static_cast<MPI_Aint>(bytes + kPageBytes), 1, MPI_INFO_NULL,
                                  neighbours.communicator, &begin, &memory.shared_);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_allocate_shared", error));
  if (const int error = MPI_Win_set_errhandler(memory.shared_, MPI_ERRORS_RETURN);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_set_errhandler", error));
  // One epoch for all rounds, without which MPI_Win_sync is not allowed. Nobody takes locks, so
  // there is nothing to wait for.
  if (const int error = MPI_Win_lock_all(MPI_MODE_NOCHECK, memory.shared_); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_lock_all", error));
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  memory.skipped_bytes_ = (kPageBytes - address % kPageBytes) % kPageBytes;
  memory.bytes_ = {static_cast<std::byte*>(begin) + memory.skipped_bytes_, bytes};
  return memory;
}

Result<std::byte*> WindowMemory::place_of(int neighbour, std::uint64_t skipped) const {
  if (shared_ == MPI_WIN_NULL) return nullptr;
  MPI_Aint bytes = 0;
  int unit = 0;
  void* begin = nullptr;
  if (const int error = MPI_Win_shared_query(shared_, neighbour, &bytes, &unit, &begin);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_shared_query", error));
  return static_cast<std::byte*>(begin) + skipped;
}

Result<void> WindowMemory::sync() {
  if (shared_ == MPI_WIN_NULL) return {};
  if (const int error = MPI_Win_sync(shared_); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_sync", error));
  return {};
}

Result<void> WindowMemory::free() {
  bytes_ = {};
  alone_.reset();
  if (shared_ == MPI_WIN_NULL) return {};
  if (const int error = MPI_Win_unlock_all(shared_); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_unlock_all", error));
  if (const int error = MPI_Win_free(&shared_); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Win_free", error));
  return {};
}

}  // namespace belay::ranks
