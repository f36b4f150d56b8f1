// SPDX-License-Identifier: Apache-2.0
// A program and everything that it starts, such as mpirun and its ranks: started, watched, ended.
#pragma once

#include <belay/result.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::tool {

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT wait, so that work can be undone first. When
/// it is destroyed, a signal that came meanwhile takes its usual effect. One at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  bool pending() const;
};

struct ProgramStart {
  std::vector<std::string> command;  ///< found by PATH, like a shell does
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to this process's
  std::string output;  ///< both streams of the program go to this file, which is created
};

/// A started program. It reads nothing, and is a process group of its own: a Ctrl-C at the terminal
/// is this process's to deal with. Orphans of the program come to this process, so that none gets
/// away. One at a time; the destructor ends what is left.
class Program {
 public:
  /// not_found or io if it cannot be run.
  static Result<Program> start(const ProgramStart& start);
  Program(Program&& other) noexcept;
  ~Program();

  /// How the program itself ended, as waitpid() tells it; unset while it runs.
  std::optional<int> ended();
  /// The program and all that it started and that still runs.
  std::vector<pid_t> members() const;
  /// SIGKILL for all of them at once; only mpirun and its like get the time to notice, so that they
  /// clear up what their ranks leave. Returns when none is left; io if one does not go within 10 s.
  Result<void> kill();

 private:
  Program(pid_t pid, std::set<pid_t> strangers) : pid_(pid), strangers_(std::move(strangers)) {}

  pid_t pid_ = -1;
  std::optional<int> status_;
  std::set<pid_t> strangers_;  ///< children that this process had before
};

/// "exit code 3", "signal 11 (Segmentation fault)".
std::string describe_status(int status);

}  // namespace belay::tool
