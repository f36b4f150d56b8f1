// SPDX-License-Identifier: Apache-2.0
// A job that takes versions whose content rank and step decide, with or without heads:
//
//   heads_job single|multiple FIRST LAST [VICTIM FILE]
//
// It restores the newest version, which must be that of step FIRST - 1 at least, then takes
// versions up to LAST, and says so. With a victim, the head of that node kills itself as soon as
// FILE is there, which rank 0 makes when checkpoint() of step LAST has returned; all others must
// then lose it in time. Everything else is up to BELAY_* variables.
#include <belay/mpi.hpp>

#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Numbers = std::vector<std::uint64_t>;

/// A half of it is the same on all ranks; a tenth changes with each step, and it grows.
Numbers numbers_of(int rank, std::uint64_t step) {
  constexpr std::size_t kShared = 100'000;
  Numbers numbers(2 * kShared + 10'000 * static_cast<std::size_t>(rank) + 3'000 * step);
  std::mt19937_64 random(7);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i == kShared) random.seed(static_cast<unsigned>(100 + rank));
    numbers[i] = random();
  }
  for (std::size_t i = 0; i < numbers.size(); i += 10'000)
    for (std::size_t j = i; j < i + 1000 && j < numbers.size(); ++j) numbers[j] += step;
  return numbers;
}

int complain(int rank, const std::string& what) {
  std::fprintf(stderr, "heads_job: rank %d: %s\n", rank, what.c_str());
  return 1;
}

/// Peers are lost, and MPI_Finalize would wait for them.
[[noreturn]] void leave(int code) {
  std::fflush(stdout);
  std::_Exit(code);
}

struct Task {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::string victim;
  std::string file;
};

int expect_loss(belay::Session& session, int rank) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) {
    const auto taken = session.checkpoint();
    const auto waited = taken ? session.wait() : taken;
    if (waited) continue;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (waited.error().code() != belay::Code::peer_lost)
      return complain(rank, waited.error().message());
    std::printf("rank %d lost a peer after %.1f s\n", rank, seconds.count());
    return 0;
  }
  return complain(rank, "nobody was lost");
}

int compute(belay::Session& session, const Task& task) {
  const MPI_Comm ranks = belay::comm(session);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(ranks, &rank);
  MPI_Comm_size(ranks, &size);
  std::uint64_t step = 0;
  Numbers numbers;
  if (!session.protect("step", step) || !session.protect("numbers", numbers)) return 1;
  if (session.latest()) {
    if (const auto restored = session.restore(); !restored)
      return complain(rank, restored.error().message());
    if (numbers != numbers_of(rank, step)) return complain(rank, "other numbers came back");
    if (step + 1 < task.first) return complain(rank, "an old version came back");
  } else if (task.first > 1) {
    return complain(rank, "nothing came back");
  }
  while (step < task.last) {
    numbers = numbers_of(rank, ++step);
    if (const auto taken = session.checkpoint(); !taken)
      return complain(rank, taken.error().message());
  }
  if (!task.victim.empty()) {
    if (rank == 0) std::ofstream(task.file).put('!');
    leave(expect_loss(session, rank));
  }
  if (const auto closed = session.close(); !closed) return complain(rank, closed.error().message());
  std::printf("rank %d of %d has step %llu\n", rank, size, static_cast<unsigned long long>(step));
  return 0;
}

int serve(belay::Session& session, const Task& task) {
  if (belay::comm(session) != MPI_COMM_NULL) return complain(-1, "a head has a communicator");
  const char* node = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* per_node = std::getenv("BELAY_RANKS_PER_NODE");
  const bool is_victim = node != nullptr && per_node != nullptr && !task.victim.empty() &&
                         std::stoi(node) / std::stoi(per_node) == std::stoi(task.victim);
  if (is_victim)
    std::thread([file = task.file] {
      while (!std::filesystem::exists(file))
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      std::raise(SIGKILL);
    }).detach();
  const int served = session.serve();
  if (!task.victim.empty()) leave(0);
  if (served == 0) std::printf("a head has served\n");
  return served;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return complain(-1, "use: heads_job single|multiple FIRST LAST [VICTIM FILE]");
  int provided = MPI_THREAD_SINGLE;
  if (std::string(argv[1]) == "single")
    MPI_Init(&argc, &argv);
  else
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const Task task{std::stoull(argv[2]), std::stoull(argv[3]), argc > 5 ? argv[4] : "",
                  argc > 5 ? argv[5] : ""};
  int result = 1;
  if (auto opened = belay::open(MPI_COMM_WORLD); !opened) {
    result = complain(-1, opened.error().message());
  } else {
    belay::Session session = std::move(*opened);
    result = session.is_head() ? serve(session, task) : compute(session, task);
  }
  MPI_Finalize();
  return result;
}
