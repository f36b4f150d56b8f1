// SPDX-License-Identifier: Apache-2.0
#include "measure/process.hpp"

#include "measure/must.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

extern char** environ;

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  return pointers;
}

/// What the started program does with its files first.
class FileActions {
 public:
  explicit FileActions(const fs::path& output) {
    int error = ::posix_spawn_file_actions_init(&actions_);
    if (error == 0 && !output.empty())
      error = ::posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output.c_str(),
                                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (error != 0) die(fmt::format("posix_spawn: {}", std::strerror(error)));
  }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_ = {};
};

}  // namespace

Workplace::Workplace(const fs::path& parent) {
  std::string name = (parent / "belay-bench-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    die(fmt::format("mkdtemp {}: {}; name a writable directory with --dir", name,
                    std::strerror(errno)));
  path_ = name;
}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

bool run_program(const std::vector<std::string>& command, const std::vector<std::string>& variables,
                 const fs::path& output) {
  std::vector<char*> words = pointers_to(command);
  words.push_back(nullptr);
  std::vector<char*> environment = pointers_to(variables);
  for (char** variable = environ; *variable; ++variable) environment.push_back(*variable);
  environment.push_back(nullptr);
  const FileActions actions(output);
  pid_t child = 0;
  if (const int error = ::posix_spawnp(&child, words[0], actions.get(), nullptr, words.data(),
                                       environment.data());
      error != 0) {
    fmt::print(stderr, "bench: {}: {}\n", command[0], std::strerror(error));
    return false;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) die(fmt::format("waitpid: {}", std::strerror(errno)));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

void allow_many_ranks() {
  // Other MPIs do not know these names.
  ::setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
  ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
}

}  // namespace belay::bench
