// SPDX-License-Identifier: Apache-2.0
#include "measure/cost.hpp"
#include "measure/must.hpp"
#include "os/memory.hpp"
#include "redundancy/raw.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>

namespace belay::bench {
namespace {

void check(const char* what, int code) {
  if (code != MPI_SUCCESS) die(fmt::format("{} failed with MPI error {}", what, code));
}

}  // namespace

struct NeighbourMemory::Window {
  MPI_Win handle = MPI_WIN_NULL;
  std::byte* neighbour = nullptr;
};

NeighbourMemory::NeighbourMemory() : window_(std::make_unique<Window>()) {
  int rank = 0, size = 0, unit = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  void* mine = nullptr;
  check("MPI_Win_allocate_shared",
        MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window_->handle));
  MPI_Aint bytes = 0;
  check("MPI_Win_shared_query", MPI_Win_shared_query(window_->handle, (rank + 1) % size, &bytes,
                                                     &unit, &window_->neighbour));
  // First touches are not what is measured.
  std::memset(mine, 0, kBytes);
  MPI_Barrier(MPI_COMM_WORLD);
  std::memset(window_->neighbour, 0, kBytes);
  MPI_Barrier(MPI_COMM_WORLD);
}

NeighbourMemory::~NeighbourMemory() { MPI_Win_free(&window_->handle); }

double NeighbourMemory::send_cpu_ms(Team& team, Image& image) {
  team.barrier();
  Stopwatch watch;
  for (auto rest = image.bytes(); !rest.empty();) {
    const std::size_t bytes = std::min(rest.size(), kBytes);
    os::copy_past_cache(window_->neighbour, rest.data(), bytes);
    rest = rest.subspan(bytes);
  }
  watch.stop();
  team.barrier();
  return watch.cpu_ms(team);
}

}  // namespace belay::bench
