// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/process_tree.hpp"

#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

namespace belay::tool {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kKillPatienceNs = 10'000'000'000;
constexpr std::uint64_t kLauncherPatienceNs = 3'000'000'000;
constexpr std::uint64_t kKillPollNs = 2'000'000;

constexpr std::array kWaiting = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t waiting_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kWaiting) sigaddset(&set, signal);
  return set;
}

/// A process as /proc shows it. The start time tells it from a later one with the same number.
struct Process {
  std::string name;
  pid_t parent = 0;
  char state = '?';
  std::uint64_t start = 0;
};

/// Starts ranks on this node as its children, and clears up after them when they die: shared memory
/// and directories that would stay for ever if it were killed with them.
bool is_launcher(const Process& process) {
  constexpr std::array<std::string_view, 8> kLaunchers = {
      "mpirun",  "mpiexec", "orterun",       "orted",
      "prterun", "prted",   "mpiexec.hydra", "hydra_pmi_proxy"};
  return std::find(kLaunchers.begin(), kLaunchers.end(), process.name) != kLaunchers.end();
}

std::optional<Process> look_at(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name in parentheses may hold anything, parentheses too; 17 fields lie between the parent
  // and the start time.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == line.npos || close == line.npos || close < open) return std::nullopt;
  std::istringstream fields(line.substr(close + 1));
  Process process;
  process.name = line.substr(open + 1, close - open - 1);
  fields >> process.state >> process.parent;
  std::string skipped;
  for (int i = 0; i < 17; ++i) fields >> skipped;
  if (!(fields >> process.start)) return std::nullopt;
  return process;
}

std::map<pid_t, Process> all_processes() {
  std::map<pid_t, Process> found;
  std::error_code ended;
  for (fs::directory_iterator entry("/proc", ended), last; entry != last; entry.increment(ended)) {
    const std::string name = entry->path().filename().string();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (const auto process = look_at(pid)) found.emplace(pid, *process);
  }
  return found;
}

/// All processes below this one, but for those in `without` and below them.
std::map<pid_t, Process> descendants(const std::set<pid_t>& without) {
  const auto all = all_processes();
  std::multimap<pid_t, pid_t> children;
  for (const auto& [pid, process] : all) children.emplace(process.parent, pid);
  std::map<pid_t, Process> found;
  std::vector<pid_t> parents = {::getpid()};
  while (!parents.empty()) {
    const auto [first, last] = children.equal_range(parents.back());
    parents.pop_back();
    for (auto child = first; child != last; ++child)
      if (!without.contains(child->second) &&
          found.emplace(child->second, all.at(child->second)).second)
        parents.push_back(child->second);
  }
  return found;
}

/// Only the process that was seen: its number may belong to another one by now.
void kill_seen(pid_t pid, const Process& seen) {
  const os::Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!handle.valid() && errno != ENOSYS) return;
  const auto now = look_at(pid);
  if (!now || now->start != seen.start) return;
  if (handle.valid())
    ::syscall(SYS_pidfd_send_signal, handle.number(), SIGKILL, nullptr, 0);
  else
    ::kill(pid, SIGKILL);
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::map<std::string, std::string> variables;
  for (char** variable = ::environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string text = *variable;
    variables.emplace(text.substr(0, text.find('=')), text);
  }
  for (const auto& [name, value] : added)
    variables.insert_or_assign(name, fmt::format("{}={}", name, value));
  std::vector<std::string> texts;
  for (auto& variable : variables) texts.push_back(std::move(variable.second));
  return texts;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// In the child: only calls that are safe after fork(). `report` gets errno if the program cannot
/// be run; else it closes with the exec.
[[noreturn]] void become(char* const* command, char* const* environment, const char* output,
                         int report) {
  // Should this tool be killed itself, the program goes with it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  ::setpgid(0, 0);
  for (const int signal : kWaiting) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = ::open("/dev/null", O_RDONLY);
  const int out = ::open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in != -1 && out != -1 && ::dup2(in, 0) != -1 && ::dup2(out, 1) != -1 && ::dup2(out, 2) != -1)
    ::execvpe(command[0], command, environment);
  const int error = errno;
  static_cast<void>(os::retry([&] { return ::write(report, &error, sizeof error); }));
  ::_exit(127);
}

/// 0 or errno.
int spawn(pid_t& pid, const ProgramStart& start) {
  auto command = start.command;
  auto environment = environment_with(start.environment);
  const auto arguments = pointers_to(command);
  const auto variables = pointers_to(environment);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno;
  const os::Descriptor reader(ends[0]);
  os::Descriptor writer(ends[1]);
  pid = ::fork();
  if (pid == -1) return errno;
  if (pid == 0) become(arguments.data(), variables.data(), start.output.c_str(), writer.number());
  writer.close();
  int error = 0;
  if (os::retry([&] { return ::read(reader.number(), &error, sizeof error); }) <= 0) return 0;
  os::retry([&] { return ::waitpid(pid, nullptr, 0); });
  return error;
}

}  // namespace

Interrupts::Interrupts() {
  const auto set = waiting_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Interrupts::~Interrupts() {
  const auto set = waiting_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

bool Interrupts::pending() const {
  sigset_t pending;
  sigpending(&pending);
  return std::any_of(kWaiting.begin(), kWaiting.end(),
                     [&](int signal) { return sigismember(&pending, signal) == 1; });
}

Result<Program> Program::start(const ProgramStart& start) {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0)
    return Unexpected(os::error_of(errno, "adopt the orphans of", start.command.front()));
  std::set<pid_t> strangers;
  for (const auto& process : descendants({})) strangers.insert(process.first);
  pid_t pid = -1;
  if (const int error = spawn(pid, start))
    return fail(os::code_of(error) == Code::not_found ? Code::not_found : Code::io,
                "run {}: {} (is the path right, and may you execute it?)", start.command.front(),
                ::strerror(error));
  return Program(pid, std::move(strangers));
}

Program::Program(Program&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      strangers_(std::move(other.strangers_)) {}

Program::~Program() {
  // What does not go even so is beyond anyone's reach; kill() has told those who asked.
  if (pid_ != -1) static_cast<void>(kill());
}

std::optional<int> Program::ended() {
  int status = 0;
  if (!status_ && os::retry([&] { return ::waitpid(pid_, &status, WNOHANG); }) == pid_)
    status_ = status;
  return status_;
}

std::vector<pid_t> Program::members() const {
  std::vector<pid_t> members;
  for (const auto& [pid, process] : descendants(strangers_))
    if (process.state != 'Z') members.push_back(pid);
  return members;
}

Result<void> Program::kill() {
  os::Clock& clock = os::system_clock();
  const std::uint64_t start = clock.now_ns();
  bool spares_launchers = false;
  for (bool first = true;; first = false) {
    ended();
    const auto left = descendants(strangers_);
    if (left.empty()) return {};
    const std::uint64_t waited = clock.now_ns() - start;
    // A launcher that has no ranks yet would wait for them.
    if (first)
      spares_launchers = std::any_of(left.begin(), left.end(),
                                     [](const auto& one) { return !is_launcher(one.second); });
    if (waited > kLauncherPatienceNs) spares_launchers = false;
    for (const auto& [pid, process] : left) {
      if (process.state != 'Z' && !(spares_launchers && is_launcher(process)))
        kill_seen(pid, process);
      if (process.parent == ::getpid() && pid != pid_) ::waitpid(pid, nullptr, WNOHANG);
    }
    if (waited > kKillPatienceNs)
      return fail(Code::io,
                  "process {} does not end, though it was killed; is it waiting for a file system "
                  "that does not answer?",
                  left.begin()->first);
    clock.sleep_ns(kKillPollNs);
  }
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

}  // namespace belay::tool
