// SPDX-License-Identifier: Apache-2.0
// One rank of the scenario under mpirun. mpi_crash_rank STORE [KILL_AT WHO]: rank WHO, or every
// rank if WHO is "all", ends with SIGKILL at its KILL_AT-th file operation. Exits with 0 if
// everything that came back was right and the end was reached.
#include "comm/mpi_group.hpp"
#include "crash/scenario.hpp"
#include "os/clock.hpp"
#include "os/faulty_files.hpp"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using namespace belay;

int complain(int rank, const std::string& what) {
  std::fprintf(stderr, "rank %d: %s\n", rank, what.c_str());
  return 1;
}

int play(const std::string& store, os::Files& files, int rank) {
  constexpr std::uint64_t kTimeoutNs = 20'000'000'000;
  auto group = ranks::make_mpi_group(MPI_COMM_WORLD, kTimeoutNs, os::system_clock());
  if (!group) return complain(rank, group.error().message());
  Options options = crash::small_options(store);
  options.background = "thread";
  options.ranks_per_node = 1;
  auto session = crash::open_rank(files, *std::move(group), options);
  if (!session) return complain(rank, session.error().message());
  crash::State state;
  const auto started = crash::run_rank(*session, static_cast<Rank>(rank), state, {});
  if (!started) return complain(rank, started.error().message());
  if (auto closed = session->close(); !closed) return complain(rank, closed.error().message());
  if (state != crash::state_at(crash::kLastStep, static_cast<Rank>(rank)))
    return complain(rank, "wrong final state");
  if (rank == 0) std::printf("started at step %llu\n", static_cast<unsigned long long>(*started));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool dies = argc == 4 && (argv[3] == std::string("all") || std::atoi(argv[3]) == rank);
  const std::uint64_t at = dies ? std::strtoull(argv[2], nullptr, 10) : 0;
  os::FaultyFiles files(os::posix_files(), [at](const os::Operation& operation) {
    if (operation.number == at) ::kill(::getpid(), SIGKILL);
    return os::Action{};
  });
  const int code = argc == 2 || argc == 4 ? play(argv[1], files, rank) : 2;
  std::fflush(nullptr);
  if (code != 0) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  return code;
}
