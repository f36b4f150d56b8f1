// SPDX-License-Identifier: Apache-2.0
// Programs that a benchmark starts, and the place where they may leave files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace belay::bench {

/// A directory of its own below the one that the user named, gone at the end.
class Workplace {
 public:
  /// Ends the program if it cannot be made.
  explicit Workplace(const std::filesystem::path& parent);
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs a program to its end: true if it returned 0. `variables` ("NAME=value") go before those of
/// the environment; standard output goes to `output`, if there is one.
bool run_program(const std::vector<std::string>& command,
                 const std::vector<std::string>& variables = {},
                 const std::filesystem::path& output = {});

/// The program that is running.
std::filesystem::path this_program();

/// More ranks than processors are meant in what mpirun starts from now on.
void allow_many_ranks();

}  // namespace belay::bench
