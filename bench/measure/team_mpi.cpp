// SPDX-License-Identifier: Apache-2.0
#include <belay/mpi.hpp>

#include "measure/must.hpp"
#include "measure/team.hpp"

namespace belay::bench {
namespace {

void check(const char* what, int code) {
  if (code != MPI_SUCCESS) die(fmt::format("{} failed with MPI error {}", what, code));
}

class MpiTeam final : public Team {
 public:
  MpiTeam() {
    check("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check("MPI_Comm_size", MPI_Comm_size(MPI_COMM_WORLD, &size_));
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void barrier() override { check("MPI_Barrier", MPI_Barrier(MPI_COMM_WORLD)); }
  double max(double value) override { return reduce(value, MPI_MAX); }
  double sum(double value) override { return reduce(value, MPI_SUM); }
  Result<Session> open(Options options) override {
    return belay::open(MPI_COMM_WORLD, std::move(options));
  }

 private:
  static double reduce(double value, MPI_Op operation) {
    check("MPI_Allreduce",
          MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD));
    return value;
  }

  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

std::unique_ptr<Team> make_mpi_team() { return std::make_unique<MpiTeam>(); }

}  // namespace belay::bench
