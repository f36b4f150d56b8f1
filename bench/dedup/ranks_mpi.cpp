// SPDX-License-Identifier: Apache-2.0
// bench_dedup_ranks: saves one kind of contents in many ways, under mpirun.
#include "dedup/trials.hpp"
#include "measure/rank_job.hpp"

int main(int argc, char** argv) {
  return belay::bench::run_rank_job(argc, argv, belay::bench::run_trials);
}
