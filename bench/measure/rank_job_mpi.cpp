// SPDX-License-Identifier: Apache-2.0
#include "measure/must.hpp"
#include "measure/rank_job.hpp"

#include <mpi.h>

#include <fstream>
#include <string_view>

namespace belay::bench {

int run_rank_job(int argc, char** argv, RankJob job) {
  MPI_Init(&argc, &argv);
  if (argc != 5 || argv[1] != std::string_view("--job") || argv[3] != std::string_view("--result"))
    die(fmt::format("{} is started by a benchmark", argv[0]));
  try {
    const auto team = make_mpi_team();
    const nlohmann::json found = job(*team, nlohmann::json::parse(argv[2]));
    if (team->rank() == 0) {
      std::ofstream file(argv[4]);
      file << found;
      if (!file.flush()) die(fmt::format("cannot write {}", argv[4]));
    }
  } catch (const std::exception& failure) {
    die(failure.what());
  }
  MPI_Finalize();
  return 0;
}

}  // namespace belay::bench
