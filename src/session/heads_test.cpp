// SPDX-License-Identifier: Apache-2.0
// Sessions whose background work is done by heads. Processes are threads here, which share memory
// and talk over real lines.
#include "os/faulty_files.hpp"
#include "session/played_ranks_test.hpp"
#include "session/roles.hpp"
#include "session/session_test.hpp"

#include <algorithm>
#include <cerrno>
#include <map>
#include <thread>

namespace belay::session {
namespace {

TEST(Roles, TheLastProcessesOfEachNodeAreHeadsAndShareItsRanksEvenly) {
  const std::vector<std::string> nodes = {"a", "b", "a", "a", "b", "a", "b", "b", "a"};
  const auto roles = must(assign_roles(nodes, 2));
  EXPECT_EQ(roles.application, (std::vector<Rank>{0, 1, 2, 3, 4}));
  EXPECT_EQ(roles.heads, (std::vector<Rank>{5, 6, 7, 8}));
  EXPECT_EQ(roles.crews, (std::vector<std::vector<Rank>>{{0, 2}, {1}, {4}, {3}}));
}

TEST(Roles, ANodeWithTooFewProcessesIsNamed) {
  const std::vector<std::string> nodes = {"a", "a", "b"};
  expect_error(assign_roles(nodes, 1), Code::invalid_argument, {"\"b\"", "1 ranks"});
  expect_error(assign_roles({nodes.data(), 2}, 2), Code::invalid_argument, {"\"a\"", "2 ranks"});
  EXPECT_TRUE(assign_roles({nodes.data(), 2}, 1));
}

struct Job {
  Rank nodes = 3;
  Rank ranks_on_node = 2;
  Rank heads_on_node = 1;  ///< 0: no heads
  std::string redundancy = "replicas:2";
  std::string staging = "1MiB";
  std::string levels = {};  ///< with a global tier
  Rank aggregate = 0;       ///< 0: not given
};

class HeadsTest : public testing::Test {
 protected:
  static std::vector<std::uint64_t> numbers_of(Rank rank, std::uint64_t step) {
    auto numbers = noise((40 + 7 * rank) * kPerBlock, rank % 2 == 0 ? 77 : rank);
    for (std::size_t i = 0; i < numbers.size(); i += 6 * kPerBlock) numbers[i] = step + rank;
    return numbers;
  }

  /// Runs `play_rank` for each rank of the application; heads serve, and must succeed.
  void play(const Job& job, const std::function<void(Rank, Session&)>& play_rank) {
    const Rank on_node = job.ranks_on_node + job.heads_on_node;
    auto groups = ranks::make_thread_groups(job.nodes * on_node, timeout_ns_);
    std::vector<std::thread> threads;
    for (Rank process = 0; process < groups.size(); ++process)
      threads.emplace_back([&, process, group = std::move(groups[process])]() mutable {
        try {
          auto session = must(try_open(job, std::to_string(process / on_node), std::move(group),
                                       process % on_node >= job.ranks_on_node));
          const Rank rank = process / on_node * job.ranks_on_node + process % on_node;
          ASSERT_EQ(session.is_head(), process % on_node >= job.ranks_on_node);
          if (session.is_head())
            EXPECT_EQ(session.serve(), served_);
          else
            play_rank(rank, session);
        } catch (const std::exception& thrown) {
          ADD_FAILURE() << "process " << process << ": " << thrown.what();
        }
      });
    for (auto& thread : threads) thread.join();
  }

  Result<Session> try_open(const Job& job, const std::string& node,
                           std::unique_ptr<ranks::Group> group, bool is_head = false) {
    Options options;
    options.store = "/store";
    if (!job.levels.empty()) {
      options.levels = job.levels;
      options.global = "/global";
      if (job.aggregate > 0) options.aggregate = job.aggregate;
    }
    options.application = "test";
    options.block = kBlock;
    options.staging = job.staging;
    options.background = job.heads_on_node > 0 ? "head" : "thread";
    options.heads_per_node = std::max<Rank>(job.heads_on_node, 1);
    if (job.levels.empty()) options.redundancy = job.redundancy;
    options.node = node;
    options.late = late_;
    options.timeout = std::chrono::nanoseconds(timeout_ns_);
    return open_played(played_seams(is_head ? head_files_ : files_), std::move(group), options);
  }

  void take_versions(const Job& job, std::uint64_t first, std::uint64_t last) {
    play(job, [&](Rank rank, Session& session) {
      std::vector<std::uint64_t> numbers;
      must(session.protect("numbers", numbers));
      if (session.latest()) must(session.restore());
      for (std::uint64_t step = first; step <= last; ++step) {
        numbers = numbers_of(rank, step);
        const Version version = must(session.checkpoint());
        std::fill(numbers.begin(), numbers.end(), 0);  // it was captured
        EXPECT_EQ(must(session.wait()), version);
        EXPECT_TRUE(session.stats().last.balances());
      }
      EXPECT_EQ(session.stats().failed, 0u);
      must(session.close());
    });
  }
  void expect_restored(const Job& job, std::uint64_t step) {
    play(job, [&](Rank rank, Session& session) {
      std::vector<std::uint64_t> numbers;
      must(session.protect("numbers", numbers));
      must(session.restore());
      EXPECT_EQ(numbers, numbers_of(rank, step)) << "rank " << rank;
      must(session.close());
    });
  }
  /// All processes, heads too, say the same of why they do not open.
  void expect_refused(const std::vector<std::string>& words) {
    const Job job;
    const Rank on_node = job.ranks_on_node + job.heads_on_node;
    auto groups = ranks::make_thread_groups(job.nodes * on_node, timeout_ns_);
    std::vector<std::thread> threads;
    for (Rank process = 0; process < groups.size(); ++process)
      threads.emplace_back([&, process, group = std::move(groups[process])]() mutable {
        const auto opened = try_open(job, std::to_string(process / on_node), std::move(group),
                                     process % on_node >= job.ranks_on_node);
        ASSERT_FALSE(opened) << process;
        EXPECT_EQ(opened.error().code(), Code::io) << opened.error().message();
        for (const std::string& word : words)
          EXPECT_NE(opened.error().message().find(word), std::string::npos)
              << opened.error().message();
      });
    for (auto& thread : threads) thread.join();
  }
  void lose(const std::string& node) {
    for (const std::string& path : memory_.paths())
      if (path.starts_with("/store/node-" + node + "/")) must(memory_.remove(path));
  }

  os::MemoryFiles memory_;
  std::atomic<int> error_ = 0;                 ///< of writes to copies, if not 0
  std::atomic<int> directory_error_ = 0;       ///< of nodes' directories
  std::atomic<int> head_directory_error_ = 0;  ///< of the store's, in heads
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           if (operation.kind == os::Operation::Kind::make_directory &&
                               operation.path.find("/node-") != std::string::npos)
                             return os::Action{.error = directory_error_.load()};
                           const bool hit = operation.kind == os::Operation::Kind::write &&
                                            operation.path.find("/copy-") != std::string::npos;
                           return os::Action{.error = hit ? error_.load() : 0};
                         }};
  std::atomic<int> head_error_ = 0;     ///< of writes to bundles, if not 0
  std::atomic<int> bundle_writes_ = 0;  ///< by heads
  os::FaultyFiles head_files_{files_, [this](const os::Operation& operation) {
                                if (operation.kind == os::Operation::Kind::make_directory)
                                  return os::Action{.error = head_directory_error_.load()};
                                const bool hit =
                                    operation.kind == os::Operation::Kind::write &&
                                    operation.path.find("/bundle-") != std::string::npos;
                                bundle_writes_ += hit;
                                return os::Action{.error = hit ? head_error_.load() : 0};
                              }};
  std::uint64_t timeout_ns_ = 60'000'000'000;
  std::string late_ = "wait";
  int served_ = 0;  ///< what heads return
};

TEST_F(HeadsTest, VersionsComeBackAndSurviveTheLossOfANode) {
  take_versions({}, 1, 5);
  lose("1");
  expect_restored({}, 5);
  lose("2");
  expect_restored({}, 5);
}

TEST_F(HeadsTest, AStoreDoesNotDependOnWhetherThereAreHeads) {
  const Job without{.heads_on_node = 0};
  take_versions({}, 1, 3);
  take_versions(without, 4, 6);
  take_versions({}, 7, 8);
  lose("0");
  expect_restored(without, 8);
}

TEST_F(HeadsTest, SeveralHeadsOnANodeShareItsRanks) {
  const Job job{.nodes = 2, .ranks_on_node = 3, .heads_on_node = 2};
  take_versions(job, 1, 3);
  lose("0");
  expect_restored(job, 3);
}

TEST_F(HeadsTest, HeadsAloneWriteVersionsOfOneNode) {
  const Job job{.nodes = 1, .redundancy = "none"};
  take_versions(job, 1, 4);
  expect_restored(job, 4);
}

TEST_F(HeadsTest, WhatDoesNotFitInStagingIsSharedByTheRanksThemselves) {
  const Job job;
  const auto large = [](Rank rank, std::uint64_t step) { return noise(200'000, 10 * step + rank); };
  play(job, [&](Rank rank, Session& session) {
    std::vector<std::uint64_t> numbers = large(rank, 1);  // 1.6 MB
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    ++numbers[5];
    must(session.checkpoint());
    EXPECT_EQ(must(session.wait()), 2u);
    std::fill(numbers.begin(), numbers.end(), 0);
    must(session.restore());
    auto expected = large(rank, 1);
    ++expected[5];
    EXPECT_EQ(numbers, expected);
    must(session.close());
  });
}

TEST_F(HeadsTest, AFailureOfAHeadsDiskIsReportedOnceAndTheNextVersionHasTheBlocks) {
  std::atomic<Rank> waiting = 0;
  error_ = EIO;
  const Job job;
  play(job, [&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank, 1);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    expect_error(session.wait(), Code::io, {"version 1", "copy-"});
    EXPECT_EQ(session.stats().failed, 1u);
    ++waiting;
    while (waiting < job.nodes * job.ranks_on_node) std::this_thread::yield();
    error_ = 0;
    EXPECT_EQ(must(session.checkpoint()), 2u);
    EXPECT_EQ(must(session.wait()), 2u);
    std::fill(numbers.begin(), numbers.end(), 0);
    must(session.restore());
    EXPECT_EQ(numbers, numbers_of(rank, 1));
    must(session.close());
  });
}

const Job kWithGlobalTier{.nodes = 2, .ranks_on_node = 3, .levels = "local:1,global:2"};

TEST_F(HeadsTest, HeadsBringVersionsToTheGlobalTier) {
  take_versions(kWithGlobalTier, 1, 4);
  EXPECT_GT(bundle_writes_, 0);
  for (const std::string& path : memory_.paths())
    if (path.starts_with("/store/")) must(memory_.remove(path));
  expect_restored(kWithGlobalTier, 4);
}

TEST_F(HeadsTest, FilesAreOfRanksOfOneNodeWhateverAggregateSays) {
  Job job = kWithGlobalTier;
  job.aggregate = 6;
  take_versions(job, 1, 4);
  const auto paths = memory_.paths();
  EXPECT_TRUE(std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.starts_with("/global/node-1/bundle-");
  }));
  for (const std::string& path : memory_.paths())
    if (path.starts_with("/store/")) must(memory_.remove(path));
  expect_restored(job, 4);
}

TEST_F(HeadsTest, StatisticsSayWhatAHeadHasEncoded) {
  play(kWithGlobalTier, [&](Rank rank, Session& session) {
    auto numbers = std::vector<std::uint64_t>(20'000, rank);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    must(session.checkpoint());
    must(session.close());
    const auto codecs = session.stats().codecs;
    ASSERT_EQ(codecs.size(), rank % 3 == 0 ? 1u : 0u);
    if (codecs.empty()) return;
    EXPECT_EQ(codecs[0].tier, "global");
    EXPECT_EQ(codecs[0].variable, "numbers");
    EXPECT_LT(codecs[0].encoded_bytes, codecs[0].raw_bytes);
  });
}

TEST_F(HeadsTest, AGlobalTierThatFailsAHeadCostsNothingButTheCopyThere) {
  head_error_ = ENOSPC;
  take_versions(kWithGlobalTier, 1, 3);
  for (const std::string& path : memory_.paths())
    EXPECT_EQ(path.find("/bundle-"), std::string::npos) << path;
  head_error_ = 0;
  take_versions(kWithGlobalTier, 4, 5);
  for (const std::string& path : memory_.paths())
    if (path.starts_with("/store/")) must(memory_.remove(path));
  expect_restored(kWithGlobalTier, 4);
}

TEST_F(HeadsTest, HeadsOfASessionThatIsDestroyedEndToo) {
  play({}, [&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank, 1);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
  });
  expect_restored({}, 1);
}

TEST_F(HeadsTest, ADrainOfASessionThatIsDestroyedEndsToo) {
  Job job = kWithGlobalTier;
  job.levels = "local:1,global:1";
  play(job, [&](Rank rank, Session& session) {
    auto numbers = numbers_of(rank, 1);
    must(session.protect("numbers", numbers));
    must(session.checkpoint());
    numbers = numbers_of(rank, 2);
    must(session.checkpoint());
  });
  play(job, [&](Rank, Session& session) {
    std::vector<std::uint64_t> numbers;
    must(session.protect("numbers", numbers));
    EXPECT_GE(must(session.restore()), 1u);
    must(session.close());
  });
}

TEST_F(HeadsTest, TooFewProcessesAreRefusedOnAllBeforeAnythingIsWritten) {
  auto groups = ranks::make_thread_groups(3, timeout_ns_);
  std::vector<std::thread> threads;
  for (Rank process = 0; process < 3; ++process)
    threads.emplace_back([&, process, group = std::move(groups[process])]() mutable {
      expect_error(try_open({}, std::to_string(process / 2), std::move(group)),
                   Code::invalid_argument, {"\"1\"", "1 ranks", "heads_per_node"});
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(HeadsTest, AHeadThatDoesNotReachTheStoreIsHeardOfByAllBeforeAnythingIsWritten) {
  head_directory_error_ = EROFS;
  expect_refused({"open: rank 2: head", "/store", "Read-only"});
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(HeadsTest, HeadsHearWhyRanksHaveNotOpened) {
  directory_error_ = EROFS;
  expect_refused({"open: rank ", "/store/node-", "Read-only"});
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(HeadsTest, AHeadHasNoCheckpointsOfItsOwn) {
  auto groups = ranks::make_thread_groups(2, timeout_ns_);
  std::thread head([&, group = std::move(groups[1])]() mutable {
    auto session = must(try_open({.redundancy = "none"}, "0", std::move(group)));
    expect_error(session.checkpoint(), Code::invalid_argument, {"head", "serve()"});
    EXPECT_FALSE(session.latest());
    EXPECT_EQ(session.serve(), 0);
    EXPECT_TRUE(session.close());
  });
  Job job{.redundancy = "none"};
  auto session = try_open(job, "0", std::move(groups[0]));
  if (session) {
    EXPECT_FALSE(session->is_head());
    EXPECT_TRUE(session->close());
  }
  head.join();
}

}  // namespace
}  // namespace belay::session
