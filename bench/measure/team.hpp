// SPDX-License-Identifier: Apache-2.0
// The ranks that measure together: one process, or those of an mpirun.
#pragma once

#include <belay/belay.hpp>

#include <memory>

namespace belay::bench {

/// All members but rank() and size() are collective.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  virtual double max(double value) = 0;
  virtual double sum(double value) = 0;
  virtual Result<Session> open(Options options) = 0;
};

std::unique_ptr<Team> make_solo_team();
/// REQUIRES: MPI is initialised. Only in programs that link MPI.
std::unique_ptr<Team> make_mpi_team();

}  // namespace belay::bench
