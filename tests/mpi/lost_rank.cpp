// SPDX-License-Identifier: Apache-2.0
// Ranks that put into each other's windows without end, until rank 1 is killed after a while. All
// others must lose it in time and come to their own end: exit code 0. With 0 milliseconds it is
// killed while the others open windows, which MPI does without a deadline; with fewer
// while they close one.
//
//   lost_rank MOST_NEIGHBOURS MILLISECONDS
#include "comm/mpi_group.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

using namespace belay;
using namespace belay::ranks;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout(1000);
constexpr std::uint64_t kSlot = 3u << 20;

int fail(const std::string& text) {
  fmt::print(stderr, "lost_rank: {}\n", text);
  return 1;
}

/// Puts a slot into every other window; says how the round ended.
Result<void> play_round(Group& group, Window& window, const std::vector<std::byte>& bytes) {
  std::vector<Put> puts;
  std::vector<Landing> landings;
  for (Rank other = 0; other < group.size(); ++other) {
    if (other == group.rank()) continue;
    puts.push_back({other, group.rank() * kSlot, {bytes}});
    landings.push_back({other, other * kSlot, kSlot});
  }
  return window.put(puts, landings);
}

/// Kills this process after a while.
void die_after(std::chrono::milliseconds time) {
  std::thread([time] {
    std::this_thread::sleep_for(time);
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

/// Rank 1 is gone: everything that all ranks take part in ends in time, with peer_lost.
template <class Act>
int lose_rank_1(Act act, const char* what) {
  const auto start = Clock::now();
  const auto done = act();
  if (done || done.error().code() != Code::peer_lost) return fail(std::string(what) + " succeeds");
  if (Clock::now() - start > 3 * kTimeout) return fail("the loss was noticed too late");
  return 0;
}

int play(Rank most_neighbours, std::chrono::milliseconds life_of_rank_1) {
  auto group = make_mpi_group(MPI_COMM_WORLD, std::chrono::nanoseconds(kTimeout).count(),
                              os::system_clock(), most_neighbours);
  if (!group) return fail(group.error().message());
  if (life_of_rank_1.count() == 0) {
    if ((*group)->rank() == 1) ::kill(::getpid(), SIGKILL);
    return lose_rank_1([&] { return (*group)->open_window(kSlot); }, "open_window()");
  }
  auto window = (*group)->open_window((*group)->size() * kSlot);
  if (!window) return fail(window.error().message());
  if (life_of_rank_1.count() < 0) {
    if ((*group)->rank() == 1) ::kill(::getpid(), SIGKILL);
    return lose_rank_1([&] { return (*window)->close(); }, "close()");
  }
  std::vector<std::byte> bytes(kSlot, std::byte{7});
  if ((*group)->rank() == 1) die_after(life_of_rank_1);
  for (;;) {
    const auto start = Clock::now();
    const auto done = play_round(**group, **window, bytes);
    if (done) continue;
    if (done.error().code() != Code::peer_lost) return fail(done.error().message());
    // One deadline for each part of a round in which some peers still got on.
    if (Clock::now() - start > 3 * kTimeout) return fail("the loss was noticed too late");
    break;
  }
  std::vector<std::byte>().swap(bytes);
  if ((*window)->put({}, {}).error().code() != Code::peer_lost) return fail("the window lives");
  if ((*group)->close().error().code() != Code::peer_lost) return fail("the group lives");
  window->reset();
  group->reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fail("use: lost_rank MOST_NEIGHBOURS MILLISECONDS");
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int outcome =
      play(static_cast<Rank>(std::atoi(argv[1])), std::chrono::milliseconds(std::atoi(argv[2])));
  fmt::print("rank {} ends\n", rank);
  std::fflush(nullptr);
  // Not MPI_Finalize, which would wait for the dead.
  ::_exit(outcome);
}
