// SPDX-License-Identifier: Apache-2.0
// bench_applications_ranks: takes the versions of one application again, under mpirun.
#include "applications/replay.hpp"
#include "measure/must.hpp"

#include <mpi.h>

#include <fstream>
#include <string_view>

int main(int argc, char** argv) {
  using namespace belay::bench;
  MPI_Init(&argc, &argv);
  if (argc != 5 || argv[1] != std::string_view("--job") || argv[3] != std::string_view("--result"))
    die("bench_applications_ranks is started by bench_applications");
  try {
    const auto team = make_mpi_team();
    const Json found = run_replay(*team, Json::parse(argv[2]));
    if (team->rank() == 0) {
      std::ofstream file(argv[4]);
      file << found;
      if (!file.flush()) die(std::string("cannot write ") + argv[4]);
    }
  } catch (const std::exception& failure) {
    die(failure.what());
  }
  MPI_Finalize();
}
