// SPDX-License-Identifier: Apache-2.0
// What the MPI examples share: the command line, ends good and bad, and sums that round alike in
// every run. Nothing here is needed in order to use Belay.
#pragma once

#include <belay/mpi.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace job {

/// What every example can be told.
struct Settings {
  long steps = 0;
  std::string picture;
  long pace_ms = 0;
};

/// An option that only one example has; what the variable holds before is the default. A whole
/// number lies between `least` and `most`, another number is not negative.
struct Option {
  std::string name;
  std::string help;
  std::variant<long*, double*, bool*, std::string*> variable;
  long least = 0;
  long most = 0;
};

/// Parses the command line; settings.steps is the default. A wrong one ends the program.
/// REQUIRES: MPI is initialised.
void parse(const std::string& about, const std::vector<Option>& options, Settings& settings,
           int argc, char** argv);

int rank();
int ranks();
/// The ranks that compute: all of MPI_COMM_WORLD, until somebody says otherwise.
MPI_Comm world();
/// Collective over `ranks`: with heads not all processes compute.
void compute_among(MPI_Comm ranks);

/// Ends all ranks, from any of them.
[[noreturn]] void stop(const std::string& message);
[[noreturn]] inline void stop(const belay::Error& error) { stop(error.message()); }
/// Collective: for what all ranks see alike.
[[noreturn]] void refuse(const std::string& message);
/// By rank 0 only, at once.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The part of `total` things that the `part`-th of `parts` has: as even as can be.
struct Part {
  long first = 0;
  long count = 0;
};
Part part_of(long total, int parts, int part);

/// Collective. Adds in the order of ranks: MPI_Allreduce may add in any order, and so round in any
/// way. The largest is the same in any order.
double sum_over_ranks(double mine);
double max_over_ranks(double mine);

/// Collective. Takes up the newest version, if there is one, and says at which step the run begins.
void restore_or_start(belay::Session& session, const long& step);
/// Sleeps after a step, so that a person or a test can interfere.
void keep_pace(const Settings& settings);

/// Collective. Prints a number that depends on every bit of every rank's state.
void print_digest(std::initializer_list<std::span<const std::byte>> state);

/// Collects what a run must satisfy; prints each as it comes. Collective, and all ranks know alike.
class Verdict {
 public:
  /// |value| <= bound
  void demand(const char* what, double value, double bound);
  /// 0, or 1 if anything failed.
  int exit_code() const { return failed_ ? 1 : 0; }

 private:
  bool failed_ = false;
};

}  // namespace job
