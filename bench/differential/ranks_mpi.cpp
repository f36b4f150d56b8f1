// SPDX-License-Identifier: Apache-2.0
// bench_differential_ranks: one job of bench_differential, under mpirun.
#include "differential/jobs.hpp"
#include "measure/must.hpp"

#include <mpi.h>

#include <string_view>

int main(int argc, char** argv) {
  using namespace belay::bench;
  MPI_Init(&argc, &argv);
  if (argc != 5 || argv[1] != std::string_view("--job") || argv[3] != std::string_view("--result"))
    die("bench_differential_ranks is started by bench_differential");
  try {
    run_job(*make_mpi_team(), Json::parse(argv[2]), argv[4]);
  } catch (const std::exception& failure) {
    die(failure.what());
  }
  MPI_Finalize();
}
