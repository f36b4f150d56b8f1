// SPDX-License-Identifier: Apache-2.0
// Versions whose only files are bundles: nodes hold nothing, and ranks share files at once.
#include "os/faulty_files.hpp"
#include "session/tiered_session_test.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace belay::session {
namespace {

class BundlingTest : public TieredSessionTest {
 protected:
  BundlingTest() {
    levels_ = "global:1";
    global_ = "/pfs";
    background_ = "thread";
    places_ = {0, 0, 1, 1};
    adjust_ = [this](Rank, Options& options) { options.aggregate = aggregate_; };
  }
  /// Files of versions, whatever they are.
  std::size_t files_with(std::string_view kind) const { return paths_with(kind).size(); }

  std::uint64_t aggregate_ = 2;
};

TEST_F(BundlingTest, OneFileForEachSetAndVersionAndNothingElse) {
  take_versions(1, 4);
  EXPECT_EQ(files_with("/pfs/node-0/bundle-000001-0000000004-"), 1u);
  EXPECT_EQ(files_with("/pfs/node-1/bundle-000001-0000000004-"), 1u);
  EXPECT_EQ(files_with("/segment-") + files_with("/manifest-") + files_with("/copy-"), 0u);
  EXPECT_TRUE(paths_with("/store").empty());
  expect_restored(4);
}

TEST_F(BundlingTest, RanksOfSeveralNodesShareFilesIfThatMakesFewer) {
  aggregate_ = 4;
  take_versions(1, 3);
  EXPECT_EQ(files_with("/bundle-000001-0000000003-"), 1u);
  expect_restored(3);
  places_ = {1, 2, 0, 3};
  expect_restored(3);
  aggregate_ = 2;
  take_versions(4, 5);
  EXPECT_EQ(files_with("/pfs/node-1/bundle-000004-"), 2u);
  EXPECT_EQ(files_with("/pfs/node-0/bundle-000004-"), 2u);
  EXPECT_EQ(files_with("/bundle-000004-"), 4u);
  expect_restored(5);
}

TEST_F(BundlingTest, OldVersionsGoWhoeverSharedTheirFiles) {
  places_ = {0, 1, 2, 3};
  for (Version version = 1; version <= 25; version += 3) {
    aggregate_ = aggregate_ % 4 + 1;
    std::rotate(places_.begin(), places_.begin() + 1, places_.end());
    take_versions(version, version + 2);
    expect_restored(version + 2);
  }
  EXPECT_LT(files_with("/bundle-") + files_with("/segment-"), 40u);
  EXPECT_LT(files_with("/retired-"), 20u);
  EXPECT_EQ(files_with("/bundle-000001-") + files_with("/manifest-000001-"), 0u);
}

TEST_F(BundlingTest, AfterAFailureARankReadsItsManifestWhereverItLies) {
  places_ = {0, 1, 2, 3};
  aggregate_ = 4;
  std::atomic<bool> fails = false;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = fails && operation.path.find("/bundle-") != std::string::npos &&
                     operation.kind == os::Operation::Kind::rename;
    return os::Action{.error = hit ? EIO : 0};
  });
  files_of_ = [&](Rank) { return &faulty; };
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    const std::uint64_t first = session.stats().last.written_bytes;
    fails = true;
    state = TieredState::at(rank, 2);
    must(session.checkpoint());
    EXPECT_FALSE(session.wait());
    fails = false;
    take(rank, session, state, 3);
    EXPECT_LT(session.stats().last.written_bytes, first / 2);
  });
  EXPECT_FALSE(logged("cannot be read back"));
  expect_restored(3);
}

TEST_F(BundlingTest, WhatStagingCannotHoldIsPulledInsideCheckpoint) {
  const auto content = [](Rank rank) { return noise(std::size_t{3} << 17, 50 + rank); };  // 3 MiB
  on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
    auto session = must(try_open(rank, std::move(group)));
    auto large = rank == 3 ? content(rank) : noise(kPerBlock, rank);
    must(session.protect("large", large));
    must(session.checkpoint());
    EXPECT_EQ(files_with("/bundle-000001-0000000001-"), 2u) << "nobody has waited";
    must(session.close());
  });
  EXPECT_EQ(files_with("/segment-"), 0u);
  on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
    auto session = must(try_open(rank, std::move(group)));
    std::vector<std::uint64_t> large;
    must(session.protect("large", large));
    must(session.restore());
    EXPECT_TRUE(large == (rank == 3 ? content(rank) : noise(kPerBlock, rank)));
    must(session.close());
  });
}

TEST_F(BundlingTest, UnchangedBlocksAreNotWrittenAgain) {
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    const std::uint64_t first = session.stats().last.written_bytes;
    take(rank, session, state, 2);
    EXPECT_LT(session.stats().last.written_bytes, first / 2);
  });
  play([&](Rank rank, Session& session, TieredState& state) {
    must(session.restore());
    take(rank, session, state, 3);
    EXPECT_LT(session.stats().last.written_bytes, session.stats().last.protected_bytes / 2)
        << "what restore() has found in bundles is safe";
  });
  expect_restored(3);
}

TEST_F(BundlingTest, WhatNoVersionNeedsGoes) {
  take_versions(1, 30);
  EXPECT_LT(files_with("/pfs/node-0/bundle-"), 20u);
  EXPECT_LT(files_with("/pfs/node-0/retired-"), 20u);
  play([&](Rank, Session& session, TieredState&) {
    EXPECT_EQ(listed(session), "30 local+global, 29 local+global");
  });
}

TEST_F(BundlingTest, WhereTablesOfARankFillTheMemoryEachRankHasABundle) {
  drain_bytes_ = 1;
  aggregate_ = 4;
  take_versions(1, 30);
  for (const char* rank : {"0", "1"})
    EXPECT_EQ(files_with(std::string("/pfs/node-0/bundle-000001-0000000030-00000") + rank), 1u);
  EXPECT_EQ(files_with("/bundle-000001-0000000030-"), 4u);
  EXPECT_LT(files_with("/pfs/node-0/bundle-"), 40u) << "what no version needs goes";
  expect_restored(30);
  drain_bytes_.reset();
  take_versions(31, 32);
  EXPECT_EQ(files_with("/bundle-000003-"), 2u) << "one for each set and version again";
  expect_restored(32);
}

TEST_F(BundlingTest, OfSeveralBundlesOfARankNoneStaysIfTheLastFails) {
  drain_bytes_ = 1;
  aggregate_ = 4;
  std::atomic<bool> fails = false;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = fails && operation.kind == os::Operation::Kind::rename &&
                     operation.path.find("/bundle-000001-0000000002-000001") != std::string::npos;
    return hit ? os::Action{.error = EIO} : os::Action{};
  });
  files_of_ = [&](Rank rank) -> os::Files* {
    return rank == 0 ? static_cast<os::Files*>(&faulty) : &memory_;
  };
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    fails = true;
    state = TieredState::at(rank, 2);
    must(session.checkpoint());
    EXPECT_FALSE(session.wait());
    EXPECT_EQ(listed(session), "1 local+global");
    take(rank, session, state, 3);
  });
  EXPECT_EQ(files_with("/bundle-000001-0000000002-"), 0u) << "what is there of it goes";
  EXPECT_EQ(files_with(".tmp"), 0u);
  expect_restored(3);
}

TEST_F(BundlingTest, ABundleThatVanishesIsWrittenAgainFromMemory) {
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    if (rank == 0) must(memory_.remove(paths_with("/pfs/node-0/bundle-").front()));
    take(rank, session, state, 2);
    const bool lost_its_blocks = rank < 2;
    EXPECT_EQ(session.stats().last.written_bytes ==
                  session.stats().last.protected_bytes - session.stats().last.duplicate_here_bytes,
              lost_its_blocks)
        << rank;
  });
  EXPECT_TRUE(logged("its blocks are written again"));
  expect_restored(2);
}

TEST_F(BundlingTest, AnErrorOfOneAggregatorFailsTheVersionForAll) {
  std::atomic<bool> fails = false;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = fails && operation.kind == os::Operation::Kind::rename &&
                     operation.path.find("/bundle-") != std::string::npos;
    return hit ? os::Action{.error = EIO} : os::Action{};
  });
  files_of_ = [&](Rank rank) -> os::Files* {
    return rank == 2 ? static_cast<os::Files*>(&faulty) : &memory_;
  };
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    fails = true;
    state = TieredState::at(rank, 2);
    must(session.checkpoint());
    const auto failed = session.wait();
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().message().find("rank 2"), std::string::npos)
        << failed.error().message();
    EXPECT_EQ(listed(session), "1 local+global");
    fails = false;
    take(rank, session, state, 3);
  });
  EXPECT_EQ(files_with("/bundle-000001-0000000002-"), 0u) << "what is there of it goes";
  EXPECT_EQ(files_with(".tmp"), 0u);
  expect_restored(3);
}

TEST_F(BundlingTest, RunsWithAndWithoutSharedFilesTakeTurns) {
  aggregate_ = 1;
  take_versions(1, 3);
  EXPECT_EQ(files_with("/pfs/node-0/bundle-"), 0u);
  aggregate_ = 2;
  take_versions(4, 6);
  aggregate_ = 1;
  take_versions(7, 9);
  expect_restored(9);
  aggregate_ = 4;
  background_ = "inline";
  take_versions(10, 14);
  expect_restored(14);
  EXPECT_EQ(files_with("/manifest-"), 0u) << "those of earlier runs have gone";
}

TEST_F(BundlingTest, ADamagedBundleSendsAllRanksBackToTheVersionBefore) {
  take_versions(1, 2);
  for (const std::string& path : paths_with("/bundle-000001-0000000002-"))
    must(memory_.flip(path, 8 * (must(memory_.touch(path)) * 3 / 4)));
  play([&](Rank rank, Session& session, TieredState& state) {
    EXPECT_EQ(must(session.restore()), 1u);
    EXPECT_TRUE(state == TieredState::at(rank, 1));
  });
}

}  // namespace
}  // namespace belay::session
