// SPDX-License-Identifier: Apache-2.0
// A program of several ranks for rehearsals: heat on a ring of rods, with a flickering flame at one
// of them. With the argument `forget` the flame's state is not protected.
#include <belay/mpi.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Flame {
  std::uint32_t state = 12345;
  double flicker() {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 20);
  }
};

[[noreturn]] void stop(const belay::Error& error) {
  std::fprintf(stderr, "rehearsed_ranks: %s\n", error.message().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void advance(int rank, int ranks, std::vector<double>& rod, Flame& flame) {
  double left = 0;
  MPI_Sendrecv(&rod.back(), 1, MPI_DOUBLE, (rank + 1) % ranks, 0, &left, 1, MPI_DOUBLE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<double> next = rod;
  for (std::size_t i = 0; i < rod.size(); ++i)
    next[i] += 0.25 * ((i == 0 ? left : rod[i - 1]) - rod[i]);
  if (rank == 1 % ranks) next[rod.size() / 2] += flame.flicker();
  rod = next;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long step = 0;
  std::vector<double> rod(20000, 20.0);
  Flame flame;
  auto session = belay::open(MPI_COMM_WORLD);
  if (!session) stop(session.error());
  session->protect("step", step);
  session->protect("rod", rod);
  if (argc < 2 || std::string(argv[1]) != "forget") session->protect("flame", flame);
  if (session->latest())
    if (auto restored = session->restore(); !restored) stop(restored.error());
  for (; step < 100000; ++step) {
    if (session->due()) session->checkpoint();
    advance(rank, ranks, rod, flame);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (auto closed = session->close(); !closed) stop(closed.error());
  MPI_Finalize();
}
