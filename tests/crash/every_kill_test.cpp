// SPDX-License-Identifier: Apache-2.0
// The scenario is killed at its n-th file operation, for every n; then it is started again and must
// find a state that was, not older than the newest known to exist, and reach its end.
#include "conformance/thread_ranks.hpp"
#include "crash/scenario.hpp"
#include "crash/temporary_directory.hpp"
#include "os/faulty_files.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>

namespace belay::crash {
namespace {

constexpr int kKilled = 77;

/// Survives the child that writes it: what ranks knew before they were killed.
struct Known {
  std::atomic<std::uint64_t> exists{0};  ///< newest step that every rank saw exist
  std::atomic<std::uint64_t> ranks_at[kLastStep + 1] = {};
};

struct Case {
  const char* name;
  Rank ranks;
  const char* background;
};

class EveryKill : public testing::TestWithParam<Case> {
 protected:
  EveryKill() {
    void* shared =
        ::mmap(nullptr, sizeof(Known), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    known_ = new (shared) Known;
  }
  ~EveryKill() override { ::munmap(known_, sizeof(Known)); }

  Options options() const {
    Options options = small_options(directory_.path() + "/store");
    options.background = GetParam().background;
    return options;
  }

  /// Runs all ranks; false and a message if anything was not as it must be.
  bool run(os::Files& files, std::uint64_t least_start) {
    std::atomic<bool> good = true;
    ranks::play_ranks(GetParam().ranks, ranks::kPatience, [&](auto& group) {
      const Rank rank = group->rank();
      auto session = open_rank(files, std::move(group), options());
      State state;
      auto started = session ? run_rank(*session, rank, state,
                                        {.exists = [&](std::uint64_t step) { note_exists(step); }})
                             : Result<std::uint64_t>(Unexpected(session.error()));
      auto closed = session ? session->close() : Result<void>{};
      if (!started) complain(good, rank, started.error().message());
      if (!closed) complain(good, rank, closed.error().message());
      if (started && *started < least_start)
        complain(good, rank,
                 "came back at step " + std::to_string(*started) + ", but step " +
                     std::to_string(least_start) + " was known to exist");
      if (started && state != state_at(kLastStep, rank)) complain(good, rank, "wrong final state");
    });
    return good;
  }

  void note_exists(std::uint64_t step) {
    if (++known_->ranks_at[step] == GetParam().ranks) known_->exists = step;
  }

  static void complain(std::atomic<bool>& good, Rank rank, const std::string& what) {
    good = false;
    std::fprintf(stderr, "rank %u: %s\n", rank, what.c_str());
  }

  /// The child's exit code: kKilled, 0 if it reached the end, else a failure.
  int run_killed_at(std::uint64_t n) {
    const pid_t child = ::fork();
    if (child == 0) {
      os::FaultyFiles files(os::posix_files(), [n](const os::Operation& operation) {
        if (operation.number == n) ::_exit(kKilled);
        return os::Action{};
      });
      ::_exit(run(files, 0) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

  TemporaryDirectory directory_;
  Known* known_;
};

TEST_P(EveryKill, ComesBackFromAKillAtEveryFileOperation) {
  std::uint64_t kills = 0;
  for (std::uint64_t n = 1;; ++n) {
    directory_.clear();
    new (known_) Known;
    const int code = run_killed_at(n);
    if (code == 0) break;
    ASSERT_EQ(code, kKilled) << "operation " << n;
    ++kills;
    const std::uint64_t least = known_->exists;
    ASSERT_TRUE(run(os::posix_files(), least)) << "after a kill at operation " << n;
  }
  EXPECT_GT(kills, 100u);
  RecordProperty("kills", static_cast<int>(kills));
}

INSTANTIATE_TEST_SUITE_P(All, EveryKill,
                         testing::Values(Case{"solo_inline", 1, "inline"},
                                         Case{"solo_thread", 1, "thread"},
                                         Case{"four_threads", 4, "inline"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace belay::crash
