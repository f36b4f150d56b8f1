// SPDX-License-Identifier: Apache-2.0
// belay-torture: plays simulated histories and says which of them Belay got wrong.
//
// The histories are played by child processes, so that a crash or a real deadlock is one more
// finding with a seed.
#include "simulator/history.hpp"
#include "simulator/sim_random.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace belay::simulator {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr auto kLongestHistory = std::chrono::seconds(60);
constexpr std::uint64_t kMostFindings = 10;

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t histories = 1000;
  std::optional<std::uint64_t> history;
  std::uint64_t seconds = 0;
  std::uint64_t jobs = 1;
  bool verbose = false;
  bool expect_violation = false;
  HistoryKind kind = HistoryKind::any;
};

constexpr const char* kUsage =
    "usage: belay-torture [--seed N] [--histories M] [--first I] [--history K] [--seconds S]\n"
    "                     [--jobs J] [--replicas | --erasure | --tiers | --diskless]\n"
    "                     [--verbose] [--expect-violation]\n"
    "Plays histories I to I+M-1 of seed N (1000 of seed 1), for at most S seconds. --history "
    "plays\n"
    "one of them, --verbose prints all its operations. With --replicas all are histories of nodes\n"
    "that keep copies for each other, with --erasure of nodes that keep parity, with --tiers also "
    "of\n"
    "levels and a global tier, with --diskless of a global tier alone, else a share is. Exit "
    "codes: 0 none is violated, 1 some are, 2 "
    "usage;\n"
    " with --expect-violation 0 if the oracle found a violation, else 1.\n";

const char* option_of(HistoryKind kind) {
  if (kind == HistoryKind::any) return "";
  if (kind == HistoryKind::erasure) return " --erasure";
  if (kind == HistoryKind::diskless) return " --diskless";
  return kind == HistoryKind::replicas ? " --replicas" : " --tiers";
}

bool take_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Arguments> parse(std::span<char*> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--verbose") {
      arguments.verbose = true;
      continue;
    }
    if (word == "--expect-violation") {
      arguments.expect_violation = true;
      continue;
    }
    if (word == "--replicas") {
      arguments.kind = HistoryKind::replicas;
      continue;
    }
    if (word == "--erasure") {
      arguments.kind = HistoryKind::erasure;
      continue;
    }
    if (word == "--tiers") {
      arguments.kind = HistoryKind::tiers;
      continue;
    }
    if (word == "--diskless") {
      arguments.kind = HistoryKind::diskless;
      continue;
    }
    std::uint64_t number = 0;
    if (i + 1 >= words.size() || !take_number(words[++i], number)) return {};
    if (word == "--seed")
      arguments.seed = number;
    else if (word == "--histories")
      arguments.histories = number;
    else if (word == "--first")
      arguments.first = number;
    else if (word == "--history")
      arguments.history = number;
    else if (word == "--seconds")
      arguments.seconds = number;
    else if (word == "--jobs" && number > 0)
      arguments.jobs = number;
    else
      return {};
  }
  return arguments;
}

/// What a child tells its parent, in shared memory.
struct Progress {
  std::atomic<std::uint64_t> current;
  std::atomic<std::uint64_t> played;
  std::atomic<std::uint64_t> violated;
  std::atomic<std::uint64_t> operations;
  std::atomic<std::uint64_t> checkpoints;
  std::atomic<std::uint64_t> restores;
  std::atomic<std::uint64_t> overlaps;
  std::atomic<std::uint64_t> stopped;
  std::atomic<std::uint64_t> losses;
  std::atomic<std::uint64_t> set_losses;
  std::atomic<std::uint64_t> healings;
  std::atomic<std::uint64_t> removals;
  std::atomic<std::uint64_t> walks;
};

/// Handing the baton on is five times as fast when all threads stay on one processor. Programs that
/// run at the same time claim different ones, by an abstract socket name that ends with them.
void stay_on_one_processor() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (claim < 0) return;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string text = "belay-torture-processor-" + std::to_string(cpu);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    const auto length = offsetof(sockaddr_un, sun_path) + 1 + text.size();
    if (bind(claim, reinterpret_cast<const sockaddr*>(&name), static_cast<socklen_t>(length)) !=
        0) {
      close(claim);
      continue;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    // Without it everything works as well, only slower.
    static_cast<void>(sched_setaffinity(0, sizeof(one), &one));
    return;
  }
}

void play(const Arguments& arguments, std::uint64_t history, TaskThreads& threads,
          Progress& progress) {
  progress.current = history;
  const auto outcome =
      run_history(sub_seed(arguments.seed, history), threads, arguments.verbose, arguments.kind);
  for (const std::string& violation : outcome.violations)
    std::printf("history %llu: %s\n", static_cast<unsigned long long>(history), violation.c_str());
  std::fflush(stdout);
  progress.violated += outcome.violations.empty() ? 0 : 1;
  progress.operations += outcome.operations;
  progress.checkpoints += outcome.checkpoints;
  progress.restores += outcome.restores;
  progress.overlaps += outcome.overlaps;
  progress.stopped += outcome.stopped;
  progress.losses += outcome.losses;
  progress.set_losses += outcome.set_losses;
  progress.healings += outcome.healings;
  progress.removals += outcome.removals;
  progress.walks += outcome.walks;
  ++progress.played;
}

void play_share(const Arguments& arguments, std::uint64_t job, Progress& progress) {
  stay_on_one_processor();
  TaskThreads threads;
  const auto start = SteadyClock::now();
  const std::uint64_t enough = arguments.expect_violation ? 1 : kMostFindings;
  for (std::uint64_t i = job; i < arguments.histories && progress.violated < enough;
       i += arguments.jobs) {
    if (arguments.seconds > 0 &&
        SteadyClock::now() - start > std::chrono::seconds(arguments.seconds))
      break;
    play(arguments, arguments.first + i, threads, progress);
  }
}

struct Child {
  pid_t pid = 0;
  bool running = true;
  std::uint64_t last_seen = 0;
  SteadyClock::time_point last_change = SteadyClock::now();
};

/// Ends a child that has been busy with one history for too long; says whether it did.
bool end_stuck(Child& child, const Progress& progress) {
  const auto now = SteadyClock::now();
  if (const std::uint64_t played = progress.played; played != child.last_seen) {
    child.last_seen = played;
    child.last_change = now;
  }
  if (now - child.last_change < kLongestHistory) return false;
  std::printf("history %llu: no end after %lld s; a lock held over a file operation?\n",
              static_cast<unsigned long long>(progress.current),
              static_cast<long long>(kLongestHistory.count()));
  kill(child.pid, SIGKILL);
  return true;
}

/// Waits for a child if it has ended; says whether it ended by a crash.
bool reap(Child& child, const Progress& progress) {
  int status = 0;
  if (waitpid(child.pid, &status, WNOHANG) != child.pid) return false;
  child.running = false;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return false;
  std::printf("history %llu: the process crashed (%s %d)\n",
              static_cast<unsigned long long>(progress.current),
              WIFSIGNALED(status) ? "signal" : "exit code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return true;
}

std::uint64_t sum(std::span<const Progress> all, std::atomic<std::uint64_t> Progress::*member) {
  std::uint64_t total = 0;
  for (const Progress& progress : all) total += progress.*member;
  return total;
}

/// Starts the children and watches them; the number of those that crashed or hung.
std::uint64_t play_all(const Arguments& arguments, std::span<Progress> progress) {
  std::vector<Child> children(arguments.jobs);
  for (std::uint64_t job = 0; job < arguments.jobs; ++job) {
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
      play_share(arguments, job, progress[job]);
      std::fflush(stdout);
      _exit(0);
    }
    if (pid < 0) std::perror("belay-torture: fork");
    children[job].pid = pid;
    children[job].running = pid > 0;
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::uint64_t crashes = 0;
  for (bool running = true; running;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    running = false;
    for (std::uint64_t job = 0; job < arguments.jobs; ++job) {
      if (!children[job].running) continue;
      static_cast<void>(end_stuck(children[job], progress[job]));
      crashes += reap(children[job], progress[job]) ? 1 : 0;
      running = running || children[job].running;
    }
    if (terminal)
      std::fprintf(stderr, "\r%llu histories ",
                   static_cast<unsigned long long>(sum(progress, &Progress::played)));
  }
  if (terminal) std::fprintf(stderr, "\r");
  return crashes;
}

int report(const Arguments& arguments, std::span<const Progress> progress, std::uint64_t crashes,
           double seconds) {
  const std::uint64_t played = sum(progress, &Progress::played);
  const std::uint64_t violated = sum(progress, &Progress::violated);
  std::printf(
      "%llu histories of seed %llu in %.1f s (%llu operations, %llu checkpoints, %llu restores, "
      "%llu runs beside stragglers, which were stopped %llu times, %llu nodes lost, %llu times "
      "all that sets may lose, %llu times healed, %llu files gone from the global tier, %llu "
      "stores counted): %llu violated, %llu crashed\n",
      static_cast<unsigned long long>(played), static_cast<unsigned long long>(arguments.seed),
      seconds, static_cast<unsigned long long>(sum(progress, &Progress::operations)),
      static_cast<unsigned long long>(sum(progress, &Progress::checkpoints)),
      static_cast<unsigned long long>(sum(progress, &Progress::restores)),
      static_cast<unsigned long long>(sum(progress, &Progress::overlaps)),
      static_cast<unsigned long long>(sum(progress, &Progress::stopped)),
      static_cast<unsigned long long>(sum(progress, &Progress::losses)),
      static_cast<unsigned long long>(sum(progress, &Progress::set_losses)),
      static_cast<unsigned long long>(sum(progress, &Progress::healings)),
      static_cast<unsigned long long>(sum(progress, &Progress::removals)),
      static_cast<unsigned long long>(sum(progress, &Progress::walks)),
      static_cast<unsigned long long>(violated), static_cast<unsigned long long>(crashes));
  if (arguments.expect_violation) return violated > 0 && crashes == 0 ? 0 : 1;
  if (violated + crashes > 0)
    std::printf("replay one: belay-torture --seed %llu%s --history K --verbose\n",
                static_cast<unsigned long long>(arguments.seed), option_of(arguments.kind));
  return violated + crashes > 0 ? 1 : 0;
}

int run(const Arguments& arguments) {
  const std::size_t bytes = arguments.jobs * sizeof(Progress);
  void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("belay-torture: mmap");
    return 2;
  }
  const std::span<Progress> progress(new (shared) Progress[arguments.jobs](), arguments.jobs);
  const auto start = SteadyClock::now();
  std::uint64_t crashes = 0;
  if (arguments.history) {
    TaskThreads threads;
    play(arguments, *arguments.history, threads, progress[0]);
  } else {
    crashes = play_all(arguments, progress);
  }
  const std::chrono::duration<double> taken = SteadyClock::now() - start;
  return report(arguments, progress, crashes, taken.count());
}

}  // namespace
}  // namespace belay::simulator

int main(int argc, char** argv) {
  // One task runs at a time: an arena for each thread, and memory that goes back to the system
  // after each history, would make a third of the time.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  const auto arguments = belay::simulator::parse({argv, static_cast<std::size_t>(argc)});
  if (!arguments) {
    std::fputs(belay::simulator::kUsage, stderr);
    return 2;
  }
  return belay::simulator::run(*arguments);
}
