// SPDX-License-Identifier: Apache-2.0
// A program for rehearsals: a random walk, which is right or has one of the usual mistakes.
//
//   rehearsed [MISTAKE[=VALUE]] ...
#include <belay/belay.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>

namespace {

using Mistakes = std::map<std::string, std::string>;

/// Advances by itself alone, so that its state is all that there is to protect.
struct Generator {
  std::uint64_t state = 88172645463325252;
  std::uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
};

struct Walk {
  long step = 0;
  std::vector<double> grid = std::vector<double>(20000);
  std::vector<double> mesh = std::vector<double>(5000, 1.0);
  Generator generator;
  std::string journal;
};

int fail(const belay::Error& error) {
  std::fprintf(stderr, "rehearsed: %s\n", error.message().c_str());
  return 1;
}

/// Processes that must not outlive a rehearsal: a child, and a grandchild that nobody waits for.
void start_children(const std::string& pids) {
  const auto linger = [&](bool orphan) {
    if (orphan && fork() != 0) _exit(0);
    if (orphan) setsid();
    signal(SIGTERM, SIG_IGN);
    std::ofstream(pids, std::ios::app) << getpid() << "\n";
    for (;;) pause();
  };
  if (fork() == 0) linger(false);
  const pid_t parent = fork();
  if (parent == 0) linger(true);
  waitpid(parent, nullptr, 0);
  std::ofstream(pids, std::ios::app) << getpid() << "\n";
}

belay::Options options_of(const Mistakes& mistakes) {
  belay::Options options;
  if (const auto own = mistakes.find("own_store"); own != mistakes.end())
    options.store = own->second;
  if (mistakes.contains("own_keep")) options.keep = 2;
  if (mistakes.contains("own_interval")) options.interval = "5 calls";
  return options;
}

void protect(belay::Session& session, Walk& walk, const Mistakes& mistakes) {
  session.protect("grid", walk.grid);
  session.protect("mesh", walk.mesh);
  if (!mistakes.contains("forget_step")) session.protect("step", walk.step);
  if (!mistakes.contains("forget_generator")) session.protect("generator", walk.generator);
  if (mistakes.contains("sloppy_journal"))
    session.protect(
        "journal", [&](belay::Writer& writer) { writer.text(walk.journal); },
        [](belay::Reader& reader) { reader.text(); });
  if (mistakes.contains("only_at_first") && !session.latest())
    session.protect("origin", walk.generator);
}

void advance(Walk& walk) {
  // The mesh changes here and there, the grid in one place that chance chooses.
  walk.mesh[static_cast<std::size_t>(walk.step) % walk.mesh.size()] += 1.0;
  const std::uint64_t chance = walk.generator.next();
  walk.grid[chance % walk.grid.size()] += static_cast<double>(chance % 1000);
  walk.journal += "step\n";
  ++walk.step;
}

}  // namespace

int main(int argc, char** argv) {
  Mistakes mistakes;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto equals = word.find('=');
    mistakes[word.substr(0, equals)] = equals == word.npos ? "" : word.substr(equals + 1);
  }
  Walk walk;
  if (mistakes.contains("by_chance")) walk.generator.state = std::random_device()() | 1u;
  if (mistakes.contains("pid")) std::ofstream(mistakes["pid"]) << getpid() << "\n";
  if (mistakes.contains("children")) start_children(mistakes["children"]);
  if (mistakes.contains("hang")) std::this_thread::sleep_for(std::chrono::hours(1));
  const long steps = mistakes.contains("steps") ? std::stol(mistakes["steps"]) : 1000000;

  auto session = belay::open(options_of(mistakes));
  if (!session) return fail(session.error());
  protect(*session, walk, mistakes);
  if (mistakes.contains("fails") || (session->latest() && mistakes.contains("fails_later"))) {
    std::fprintf(stderr, "rehearsed: \x1b[31mno licence\x1b[0m\n");
    return 7;
  }
  if (session->latest() && !mistakes.contains("no_restore"))
    if (auto restored = session->restore(); !restored) return fail(restored.error());
  // Versions that go after a while must stay long enough to be seen on a busy machine.
  const bool slow = mistakes.contains("own_keep") || mistakes.contains("slow");
  const std::chrono::milliseconds pause(slow ? 40 : 2);
  while (walk.step < steps) {
    advance(walk);
    std::this_thread::sleep_for(pause);
    if (!mistakes.contains("no_checkpoint") && session->due()) session->checkpoint();
  }
  if (auto closed = session->close(); !closed) return fail(closed.error());
}
