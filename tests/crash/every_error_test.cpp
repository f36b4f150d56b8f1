// SPDX-License-Identifier: Apache-2.0
// The scenario's n-th file operation fails, for every n: once, or from then on until the step is
// over. Errors must be clear, the version before must stay, and the next one must succeed.
#include "conformance/thread_ranks.hpp"
#include "crash/scenario.hpp"
#include "crash/temporary_directory.hpp"
#include "os/faulty_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

namespace belay::crash {
namespace {

struct Case {
  const char* name;
  Rank ranks;
  int error;
  bool sticky;
};

class EveryError : public testing::TestWithParam<Case> {
 protected:
  os::Action decide(const os::Operation& operation) {
    const bool hit =
        GetParam().sticky ? operation.number >= fail_at_ && !healed_ : operation.number == fail_at_;
    if (!hit) return {};
    ++faults_;
    return {.error = GetParam().error, .torn = true};
  }

  void expect_clear(const Error& error) {
    const bool fits = error.code() == Code::io || error.code() == Code::no_space ||
                      error.code() == Code::busy || error.code() == Code::corruption;
    EXPECT_TRUE(fits) << belay::name_of(error.code()) << ": " << error.message();
    EXPECT_GT(error.message().size(), 20u) << error.message();
    ++errors_;
    healed_ = true;  // a sticky fault lasts until somebody has noticed
  }

  /// Takes all steps with faults. The newest step known to exist, by rank.
  std::vector<std::uint64_t> run_with_faults(os::Files& files) {
    std::vector<std::uint64_t> exists(GetParam().ranks, 0);
    ranks::play_ranks(GetParam().ranks, ranks::kPatience, [&](auto& group) {
      const Rank rank = group->rank();
      auto session = open_rank(files, std::move(group), options());
      if (!session) {
        expect_clear(session.error());
        return;
      }
      State state;
      auto ran = run_rank(*session, rank, state,
                          {.exists = [&](std::uint64_t step) { exists[rank] = step; },
                           .failed = [&](const Error& error) { expect_clear(error); }});
      if (!ran) expect_clear(ran.error());
      if (auto closed = session->close(); !closed) expect_clear(closed.error());
    });
    return exists;
  }

  void check_restart(const std::vector<std::uint64_t>& exists, std::uint64_t n) {
    ranks::play_ranks(GetParam().ranks, ranks::kPatience, [&](auto& group) {
      const Rank rank = group->rank();
      auto session = open_rank(os::posix_files(), std::move(group), options());
      ASSERT_TRUE(session) << "operation " << n << ": " << session.error().message();
      State state;
      auto started = run_rank(*session, rank, state, {.failed = [&](const Error& error) {
        ADD_FAILURE() << "operation " << n << ": " << error.message();
      }});
      ASSERT_TRUE(started) << "operation " << n << ": " << started.error().message();
      EXPECT_GE(*started, exists[rank]) << "operation " << n;
      EXPECT_EQ(state, state_at(kLastStep, rank));
      EXPECT_TRUE(session->close());
    });
  }

  Options options() const { return small_options(directory_.path() + "/store"); }

  TemporaryDirectory directory_;
  std::uint64_t fail_at_ = 0;
  std::atomic<bool> healed_ = false;
  std::atomic<std::uint64_t> faults_ = 0;
  std::atomic<std::uint64_t> errors_ = 0;
};

TEST_P(EveryError, CostsAtMostTheVersionThatItHit) {
  std::uint64_t noticed = 0;
  for (fail_at_ = 1;; ++fail_at_) {
    directory_.clear();
    healed_ = false;
    faults_ = errors_ = 0;
    os::FaultyFiles files(os::posix_files(), [this](const auto& o) { return decide(o); });
    const auto exists = run_with_faults(files);
    if (faults_ == 0) break;
    noticed += errors_ > 0 ? 1 : 0;
    // The fault is gone by the last step at the latest, and so is whatever it broke, unless it hit
    // the last step itself.
    for (const std::uint64_t step : exists) {
      if (step != 0) {
        EXPECT_GE(step, kLastStep - 1) << "operation " << fail_at_;
      }
    }
    check_restart(exists, fail_at_);
    if (HasFailure()) return;
  }
  EXPECT_GT(noticed, 50u);
}

INSTANTIATE_TEST_SUITE_P(All, EveryError,
                         testing::Values(Case{"solo_eio_once", 1, EIO, false},
                                         Case{"solo_eio_sticky", 1, EIO, true},
                                         Case{"solo_enospc_once", 1, ENOSPC, false},
                                         Case{"solo_enospc_sticky", 1, ENOSPC, true},
                                         Case{"four_threads_eio_once", 4, EIO, false},
                                         Case{"four_threads_eio_sticky", 4, EIO, true},
                                         Case{"four_threads_enospc_once", 4, ENOSPC, false},
                                         Case{"four_threads_enospc_sticky", 4, ENOSPC, true}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace belay::crash
