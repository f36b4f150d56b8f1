// SPDX-License-Identifier: Apache-2.0
// The scenario with levels and a global tier, over files in memory. It dies at its n-th file
// operation with a power cut, or that operation fails, for every n; then it is started again, with
// its nodes or without them.
#include "conformance/thread_ranks.hpp"
#include "crash/scenario.hpp"
#include "os/faulty_files.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <random>

namespace belay::crash {
namespace {

constexpr Rank kRanks = 2;

class SeededRandom final : public os::Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// The newest step that all ranks saw exist, and the newest that all saw on the global tier.
struct Promised {
  std::uint64_t exists = 0;
  std::uint64_t global = 0;
  bool failed = false;  ///< a version has, there or at all
};

struct Case {
  const char* name;
  const char* levels;
  std::uint64_t stride;  ///< every so-many-th operation
  const char* aggregate = nullptr;
};

class Tiers : public testing::TestWithParam<Case> {
 protected:
  Options options(Rank rank) const {
    Options options = small_options("/store");
    options.levels = GetParam().levels;
    options.global = "/global";
    options.node = std::to_string(rank);
    if (GetParam().aggregate != nullptr) options.aggregate = GetParam().aggregate;
    return options;
  }

  /// What was promised, or why a rank did not get to the end.
  Promised run(os::Files& files, std::vector<std::string>& errors) {
    std::vector<Promised> seen(kRanks);
    std::vector<std::string> messages(kRanks);
    ranks::play_ranks(kRanks, ranks::kPatience, [&](auto& group) {
      const Rank rank = group->rank();
      auto session = open_rank(files, std::move(group), options(rank));
      if (!session) {
        messages[rank] = session.error().message();
        return;
      }
      const auto note = [&](std::uint64_t step) {
        seen[rank].exists = step;
        const auto versions = session->versions();
        if (versions.front().level.ends_with("+global")) seen[rank].global = step;
      };
      State state;
      auto started = run_rank(*session, rank, state, {.exists = note});
      if (!started) messages[rank] = started.error().message();
      seen[rank].failed = !session->stats().last_failure.empty();
      if (auto closed = session->close(); !closed && messages[rank].empty())
        messages[rank] = closed.error().message();
    });
    Promised all = seen[0];
    for (const Promised& one : seen) {
      all.exists = std::min(all.exists, one.exists);
      all.global = std::min(all.global, one.global);
    }
    errors = std::move(messages);
    return all;
  }

  /// It starts from this step at least, and gets to the end.
  void expect_start(std::uint64_t least, const std::string& when) {
    ranks::play_ranks(kRanks, ranks::kPatience, [&](auto& group) {
      const Rank rank = group->rank();
      auto session = open_rank(memory_, std::move(group), options(rank));
      ASSERT_TRUE(session) << when << ": " << session.error().message();
      State state;
      auto started = run_rank(*session, rank, state, {.failed = [&](const Error& error) {
        ADD_FAILURE() << when << ": " << error.message();
      }});
      ASSERT_TRUE(started) << when << ": " << started.error().message();
      EXPECT_GE(*started, least) << when;
      EXPECT_EQ(state, state_at(kLastStep, rank)) << when;
      EXPECT_TRUE(session->close()) << when;
    });
  }
  void wipe() {
    (void)memory_.erase("/store");
    (void)memory_.erase("/global");
  }

  os::MemoryFiles memory_;
};

TEST_P(Tiers, ComeBackFromAPowerCutAtEveryFileOperation) {
  std::uint64_t deaths = 0;
  for (std::uint64_t n = 1;; n += GetParam().stride) {
    wipe();
    std::atomic<std::uint64_t> refused = 0;
    os::FaultyFiles files(memory_, [&](const os::Operation& operation) {
      if (operation.number < n) return os::Action{};
      ++refused;
      return os::Action{.error = EIO, .torn = operation.number == n};
    });
    std::vector<std::string> errors;
    const Promised promised = run(files, errors);
    if (refused == 0) break;
    ++deaths;
    SeededRandom random(n);
    memory_.power_cut(random);
    const bool nodes_lost = deaths % 2 == 0 && promised.global > 0;
    if (nodes_lost) (void)memory_.erase("/store");  // which may be nowhere
    expect_start(nodes_lost ? promised.global : promised.exists,
                 "operation " + std::to_string(n) + (nodes_lost ? ", nodes lost" : ""));
    if (HasFailure()) return;
  }
  EXPECT_GT(deaths, 100u);
}

TEST_P(Tiers, AnErrorAtAnyFileOperationCostsAtMostTheVersionThatItHit) {
  std::uint64_t missed_global = 0;
  for (std::uint64_t n = 1;; n += GetParam().stride) {
    wipe();
    std::atomic<std::uint64_t> faults = 0;
    os::FaultyFiles files(memory_, [&](const os::Operation& operation) {
      if (operation.number != n) return os::Action{};
      ++faults;
      return os::Action{.error = n % 2 == 0 ? EIO : ENOSPC, .torn = true};
    });
    std::vector<std::string> errors;
    const Promised promised = run(files, errors);
    if (faults == 0) break;
    const std::string when = "operation " + std::to_string(n) + ": " + errors[0];
    if (promised.exists != 0) {
      EXPECT_GE(promised.exists, kLastStep - 1) << when;
      // Steps 3 and 6 are due at least; the error takes one of them at most.
      EXPECT_GE(promised.global, 3u) << when;
      if (promised.global < 6 || promised.failed) ++missed_global;
      (void)memory_.erase("/store");  // which may be nowhere
    }
    expect_start(promised.global, when);
    if (HasFailure()) return;
  }
  EXPECT_GT(missed_global, 0u) << "no error has ever hit a drain";
}

INSTANTIATE_TEST_SUITE_P(All, Tiers,
                         testing::Values(Case{"local_and_global", "local:1,global:3", 1},
                                         Case{"files_over_nodes", "local:1,global:3", 1, "2"},
                                         Case{"replicas_and_global",
                                              "local:1,replicas:2:2,global:3", 3},
                                         Case{"only_global", "global:1", 1},
                                         Case{"only_global_each_its_own", "global:1", 1, "1"}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace belay::crash
