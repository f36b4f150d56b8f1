// SPDX-License-Identifier: Apache-2.0
// Counts its starts on all ranks.
#include <belay/mpi.hpp>

#include <cstdio>

int run() {
  int starts = 0;
  auto session = belay::open(MPI_COMM_WORLD);
  if (!session) return std::fprintf(stderr, "%s\n", session.error().message().c_str()), 1;
  session->protect("starts", starts);
  if (session->latest())
    if (auto restored = session->restore(); !restored) return 1;
  ++starts;
  if (session->due()) session->checkpoint();
  int rank = -1, sum = 0;
  MPI_Comm_rank(belay::comm(*session), &rank);
  MPI_Reduce(&starts, &sum, 1, MPI_INT, MPI_SUM, 0, belay::comm(*session));
  if (auto closed = session->close(); !closed) return 1;
  if (rank == 0) std::printf("%d\n", sum);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = run();
  MPI_Finalize();
  return status;
}
