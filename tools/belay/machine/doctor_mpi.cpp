// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"
#include "tools/belay/machine/doctor.hpp"
#include "tools/belay/printable.hpp"
#include "tools/belay/rehearse/process_tree.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace belay::tool {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kPollNs = 5'000'000;

bool may_run(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
}

std::string find_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "" : path);
  for (std::string directory; std::getline(directories, directory, ':');)
    if (const fs::path candidate = fs::path(directory) / program; may_run(candidate))
      return candidate.string();
  return {};
}

/// Beside the tool where it was built, or where it was installed.
std::string find_probe() {
  std::error_code failed;
  const fs::path here = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& candidate :
       {here / "belay-mpi-probe", here.parent_path() / BELAY_LIBEXEC / "belay-mpi-probe"})
    if (may_run(candidate)) return candidate.string();
  return {};
}

struct Answer {
  std::optional<int> status;  ///< unset: it did not end in time
  std::string output;
};

/// What a command prints, which goes to memory, so that it leaves nothing behind.
Result<Answer> ask(const std::vector<std::string>& command, std::uint64_t deadline_ns) {
  os::Clock& clock = os::system_clock();
  const os::Descriptor memory(::memfd_create("belay-doctor", MFD_CLOEXEC));
  if (!memory.valid()) return Unexpected(os::error_of(errno, "make", "a file in memory"));
  BELAY_ASSIGN(
      Program program,
      Program::start({.command = command,
                      .output = fmt::format("/proc/{}/fd/{}", ::getpid(), memory.number())}));
  Answer answer;
  while (!(answer.status = program.ended()) && clock.now_ns() < deadline_ns)
    clock.sleep_ns(kPollNs);
  BELAY_TRY(program.kill());
  std::array<char, 4096> text{};
  const ssize_t got =
      os::retry([&] { return ::pread(memory.number(), text.data(), text.size(), 0); });
  if (got > 0) answer.output.assign(text.data(), static_cast<std::size_t>(got));
  return answer;
}

/// The first line that says something: mpirun draws lines around its complaints.
std::string gist_of(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_not_of("- \t=") != line.npos) return printable(line);
  return "nothing";
}

/// The rest of the line that starts with `key`.
std::string value_of(const std::string& output, const std::string& key) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key + " ")) return line.substr(key.size() + 1);
  return {};
}

Finding look_at_launcher(const std::string& launcher, std::uint64_t deadline_ns) {
  const auto answer = ask({launcher, "--version"}, deadline_ns);
  if (!answer || answer->status != 0)
    return {"mpirun", Health::warn, launcher + " does not tell its version",
            "run it by hand and see; a program without MPI does not need it"};
  return {"mpirun", Health::ok, launcher + ": " + gist_of(answer->output)};
}

/// Open MPI's way, which a container meets: there everybody is root.
bool refuses_root(const std::string& output) {
  return ::geteuid() == 0 && output.find("run as root") != output.npos;
}

Finding look_at_thread_level(const std::string& launcher, const std::string& probe,
                             std::uint64_t deadline_ns) {
  const std::string by_hand = fmt::format("{} -n 1 {}", launcher, probe);
  const std::string fix = "run it by hand and see: " + by_hand;
  const auto answer = ask({launcher, "-n", "1", probe}, deadline_ns);
  if (!answer) return {"mpi", Health::warn, answer.error().message(), fix};
  if (!answer->status)
    return {"mpi", Health::warn, "a program of one rank did not end in time", fix};
  const std::string level = value_of(answer->output, "level");
  if (*answer->status != 0 && refuses_root(answer->output))
    return {"mpi", Health::warn, launcher + " refuses to start programs of root, who you are",
            "work as another user; or, where root is meant, as in a container: export "
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  if (*answer->status != 0 || level.empty())
    return {"mpi", Health::warn,
            fmt::format("a program of one rank ended with {}: {}", describe_status(*answer->status),
                        gist_of(answer->output)),
            fix};
  return {
      "mpi", Health::ok,
      fmt::format("{}; thread level {} (any will do)", value_of(answer->output, "library"), level)};
}

}  // namespace

Findings examine_mpi(std::uint64_t deadline_ns) {
  std::string launcher = find_in_path("mpirun");
  if (launcher.empty()) launcher = find_in_path("mpiexec");
  const std::string probe = find_probe();
  if (launcher.empty())
    return {{"mpirun", probe.empty() ? Health::ok : Health::warn, "not found in PATH",
             probe.empty() ? ""
                           : "install one or load its module; a program without MPI does not "
                             "need it"}};
  Findings findings = {look_at_launcher(launcher, deadline_ns)};
  if (probe.empty())
    findings.push_back({"mpi", Health::ok, "not tried: this Belay was built without MPI"});
  else
    findings.push_back(look_at_thread_level(launcher, probe, deadline_ns));
  return findings;
}

}  // namespace belay::tool
