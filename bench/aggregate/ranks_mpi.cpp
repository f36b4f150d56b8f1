// SPDX-License-Identifier: Apache-2.0
// bench_aggregate_ranks: saves one kind of contents in many ways, under mpirun.
#include "aggregate/trials.hpp"
#include "comm/mpi_group.hpp"
#include "measure/rank_job.hpp"
#include "session/seams.hpp"

#include <mpi.h>

namespace belay::bench {

Result<Session> open_with(os::Files& files, Options options) {
  session::Seams seams = session::system_seams();
  seams.files = &files;
  return session::open_session(
      seams,
      [](std::uint64_t timeout_ns, os::Clock& clock) {
        return ranks::make_mpi_group(MPI_COMM_WORLD, timeout_ns, clock);
      },
      std::move(options));
}

}  // namespace belay::bench

int main(int argc, char** argv) {
  return belay::bench::run_rank_job(argc, argv, belay::bench::run_trials);
}
