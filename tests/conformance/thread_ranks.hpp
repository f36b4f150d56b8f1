// SPDX-License-Identifier: Apache-2.0
// Threads that play the ranks of a job.
#pragma once

#include "comm/group.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace belay::ranks {

/// Long enough for any machine, short enough for a test that hangs.
inline constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds(30);

/// Runs `play` once for each rank, on a thread of its own. A rank's group is destroyed when its
/// `play` returns, unless that has moved it elsewhere.
inline void play_ranks(Rank size, std::chrono::nanoseconds timeout,
                       const std::function<void(std::unique_ptr<Group>& group)>& play) {
  auto groups = make_thread_groups(size, static_cast<std::uint64_t>(timeout.count()));
  std::vector<std::thread> threads;
  for (auto& group : groups)
    threads.emplace_back([&play, mine = std::move(group)]() mutable {
      play(mine);
      mine.reset();
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace belay::ranks
