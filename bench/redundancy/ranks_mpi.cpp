// SPDX-License-Identifier: Apache-2.0
// bench_redundancy_ranks: measures all schemes, under mpirun.
#include "measure/rank_job.hpp"
#include "redundancy/schemes.hpp"

int main(int argc, char** argv) {
  return belay::bench::run_rank_job(argc, argv, belay::bench::measure_schemes);
}
