// SPDX-License-Identifier: Apache-2.0
// Sessions of several ranks in one process: a thread plays each.
#pragma once

#include <belay/belay.hpp>

#include "comm/group.hpp"
#include "os/files.hpp"
#include "session/seams.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace belay::session {

/// Nothing comes from the environment, and one thread does the work of each kind.
inline Seams played_seams(os::Files& files) {
  Seams seams = system_seams();
  seams.files = &files;
  seams.environment.clear();
  seams.hash_threads = 1;
  seams.read_threads = 1;
  seams.host = "host";
  return seams;
}

inline Result<Session> open_played(const Seams& seams, std::unique_ptr<ranks::Group> group,
                                   Options options) {
  auto shared = std::make_shared<std::unique_ptr<ranks::Group>>(std::move(group));
  return open_session(
      seams,
      [shared](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
        return std::move(*shared);
      },
      std::move(options));
}

/// Runs `work` on a thread for each rank; what it throws fails the test.
inline void play_ranks(Rank ranks, std::uint64_t patience_ns,
                       const std::function<void(Rank, std::unique_ptr<ranks::Group>)>& work) {
  auto groups = ranks::make_thread_groups(ranks, patience_ns);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank, group = std::move(groups[rank])]() mutable {
      try {
        work(rank, std::move(group));
      } catch (const std::exception& thrown) {
        ADD_FAILURE() << "rank " << rank << ": " << thrown.what();
      }
    });
  for (auto& thread : threads) thread.join();
}

}  // namespace belay::session
