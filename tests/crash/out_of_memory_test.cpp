// SPDX-License-Identifier: Apache-2.0
// The n-th allocation of a version fails, for every n: on the program's thread, which is told, or
// on the worker's, where nobody could catch it. A program of its own, since it replaces operator
// new.
#include "crash/scenario.hpp"
#include "crash/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

/// Allocations until one fails; negative: none does.
std::atomic<long> allocations_left{-1};
std::atomic<bool> only_elsewhere{false};
thread_local bool is_program_thread = false;

bool must_fail() {
  if (allocations_left.load() < 0 || (only_elsewhere && is_program_thread)) return false;
  return allocations_left.fetch_sub(1) == 0;
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (must_fail()) throw std::bad_alloc();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
// g++ 12 does not see that the operator above is the one that these belong to.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace belay::crash {
namespace {

class OutOfMemory : public testing::TestWithParam<bool> {
 protected:
  Result<Session> open() {
    Options options = small_options(directory_.path() + "/store");
    options.background = "thread";
    return open_rank(os::posix_files(), ranks::make_solo_group(), options);
  }

  /// Takes a version of the next step; allocation `failing` of it fails. True: it exists.
  bool take_step(Session& session, State& state, long failing = -1) {
    if (!unchanged_) state = state_at(state.step % kLastStep + 1, 0);
    allocations_left = failing;
    auto version = session.checkpoint();
    auto existing = session.wait();
    reached_ = allocations_left.exchange(-1) < 0;
    for (const auto* result : {&version, &existing}) {
      if (*result) continue;
      EXPECT_EQ(result->error().code(), Code::no_space) << result->error().message();
    }
    return version && existing && *version == *existing;
  }

  /// The newest version must be `state`.
  void expect_restored(const State& state) {
    auto session = open();
    ASSERT_TRUE(session) << session.error().message();
    State restored;
    ASSERT_TRUE(protect(*session, restored));
    auto version = session->restore();
    ASSERT_TRUE(version) << version.error().message();
    EXPECT_EQ(restored, state);
  }

  void expect_usable_after_each_failure(bool unchanged) {
    is_program_thread = true;
    only_elsewhere = GetParam();
    State state;
    {
      auto session = open();
      ASSERT_TRUE(session) << session.error().message();
      ASSERT_TRUE(protect(*session, state));
      ASSERT_TRUE(take_step(*session, state));
      for (long n = 0; !HasFailure(); ++n) {
        ASSERT_LT(n, 5000);
        unchanged_ = unchanged;
        const bool exists = take_step(*session, state, n);
        unchanged_ = false;
        const bool reached = reached_;
        EXPECT_TRUE(exists || reached);
        EXPECT_TRUE(take_step(*session, state)) << "after allocation " << n << " had failed";
        if (!reached) break;
      }
      EXPECT_TRUE(session->close());
    }
    expect_restored(state);
  }

  TemporaryDirectory directory_;
  bool unchanged_ = false;  ///< the next step is the same again
  bool reached_ = false;    ///< the allocation that was to fail
};

TEST_P(OutOfMemory, AtAnyAllocationOfAVersionLeavesTheSessionUsable) {
  expect_usable_after_each_failure(/*unchanged=*/false);
}

TEST_P(OutOfMemory, AtAnyAllocationOfAVersionWithoutChangesLeavesTheSessionUsable) {
  expect_usable_after_each_failure(/*unchanged=*/true);
}

INSTANTIATE_TEST_SUITE_P(On, OutOfMemory, testing::Values(true, false), [](const auto& chosen) {
  return chosen.param ? "TheWorkersThread" : "AnyThread";
});

}  // namespace
}  // namespace belay::crash
