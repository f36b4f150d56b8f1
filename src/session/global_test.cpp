// SPDX-License-Identifier: Apache-2.0
// The global tier: versions go there in the background, come back from there when nodes are lost,
// and go when newer ones are there.
#include "os/faulty_files.hpp"
#include "session/tiered_session_test.hpp"
#include "store/bundle.hpp"
#include "store/bundled_tier.hpp"

#include <cerrno>

namespace belay::session {
namespace {

class GlobalTest : public TieredSessionTest {
 protected:
  GlobalTest() {
    levels_ = "local:1,global:3";
    global_ = "/pfs/global";
  }
  void lose_all_nodes() { lose("/store"); }
  /// Flips a bit in the middle of a block of each of these files.
  void damage(std::string_view part) {
    for (const std::string& path : paths_with(part)) must(memory_.flip(path, 8 * 700));
  }
  /// Among their blocks, which lie between the rider in front and the index.
  void damage_bundles(const std::string& directory) {
    for (const std::string& path : paths_with(directory + "bundle-"))
      must(memory_.flip(path, 8 * (must(memory_.touch(path)) * 3 / 4)));
  }
  std::unique_ptr<store::Tier> tier(const std::string& directory) {
    return store::make_bundled_tier(store::make_local_tier(memory_, directory));
  }
  std::size_t manifests_in(const std::string& directory) {
    const auto names = must(tier(directory)->list());
    return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](const auto& name) {
      return name.starts_with("manifest-");
    }));
  }
  /// Its manifests and copies become files of their own, as they were before there were bundles.
  void unbundle(const std::string& directory) {
    const auto plain = store::make_local_tier(memory_, directory);
    const auto place = tier(directory);
    const auto any = [](std::span<const std::byte>, std::uint64_t) { return Result<void>{}; };
    for (const std::string& name : must(place->list()))
      if (name.starts_with("manifest-") || name.starts_with("copy-"))
        must(store::put_whole(*plain, name, must(store::read_whole(*place, name, any)), true));
    for (const std::string& path : paths_with(directory + "/bundle-")) must(memory_.remove(path));
  }
  /// Of rank 0: the versions of segments that have blocks in the bundle of this version.
  std::vector<Version> bundled_in(const std::string& directory, VersionKey key) {
    const auto place = tier(directory);
    const auto bundle = must(store::Bundle::open(*place, {key, 0}));
    std::vector<Version> versions;
    for (const auto& segment : bundle->rider().segments) versions.push_back(segment.id.key.version);
    return versions;
  }
};

TEST_F(GlobalTest, AVersionThatIsDueIsThereOnceItWasWaitedFor) {
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    take(rank, session, state, 2);
    EXPECT_EQ(listed(session), "2 local, 1 local");
    take(rank, session, state, 3);
    EXPECT_EQ(listed(session), "3 local+global, 2 local");
    take(rank, session, state, 4);
    EXPECT_EQ(listed(session), "4 local, 3 local+global");
  });
  EXPECT_EQ(paths_with("/pfs/global/node-1/bundle-").size(), 1u);
  EXPECT_TRUE(paths_with("/pfs/global/node-1/segment-").empty()) << "only bundles";
}

TEST_F(GlobalTest, ComesBackWhenEveryNodeIsLost) {
  take_versions(1, 5);
  lose_all_nodes();
  expect_restored(3);
  // The restore took a version on nodes; without them it comes from there once more.
  lose_all_nodes();
  expect_restored(3);
}

TEST_F(GlobalTest, ComesBackOnOtherNodesAndInAnotherOrder) {
  take_versions(1, 3);
  lose_all_nodes();
  places_ = {7, 0, 1};
  expect_restored(3);
  lose_all_nodes();
  places_ = {5, 5, 5};
  expect_restored(3);
}

TEST_F(GlobalTest, TheNewestComesBackWhereverItsBlocksAre) {
  take_versions(1, 3);
  lose("/store/node-0");
  expect_restored(3);
  EXPECT_TRUE(logged("something of version 3 was lost; a new version puts it back"));
}

TEST_F(GlobalTest, ANewerLocalVersionIsTakenAsLongAsAllOfItIsThere) {
  take_versions(1, 5);
  expect_restored(5);
  lose("/store/node-2");
  expect_restored(3);
}

TEST_F(GlobalTest, DamagedBlocksOnNodesAreReplacedFromThere) {
  take_versions(1, 3);
  damage("/store/node-1/segment-");
  expect_restored(3);
}

TEST_F(GlobalTest, TheHalvesOfADamagedPairMakeAWhole) {
  take_versions(1, 3);
  damage("/store/node-0/segment-");
  damage_bundles("/pfs/global/node-1/");
  lose("/store/node-2");
  expect_restored(3);
}

TEST_F(GlobalTest, ADamagedBundleAloneIsCorruptionAndNotAFirstStart) {
  take_versions(1, 3);
  damage_bundles("/pfs/global/node-1/");
  lose_all_nodes();
  play([&](Rank, Session& session, TieredState&) {
    EXPECT_EQ(session.latest(), Version{3});
    expect_error(session.restore(), Code::corruption, {"no version"});
  });
}

TEST_F(GlobalTest, ABundleWhoseIndexIsDamagedTakesNothingFromThoseThatFollow) {
  take_versions(1, 3);
  for (const std::string& path : paths_with("/pfs/global/node-1/bundle-"))
    must(memory_.flip(path, 8 * (must(memory_.touch(path)) - 20)));
  // What it had is written again with the next one.
  take_versions(4, 6);
  lose_all_nodes();
  expect_restored(6);
}

TEST_F(GlobalTest, NothingThereYetAndNodesLostIsNotAFirstStart) {
  take_versions(1, 2);
  lose_all_nodes();
  play([&](Rank, Session& session, TieredState&) {
    EXPECT_TRUE(session.latest());
    expect_error(session.restore(), Code::corruption, {"no version"});
  });
}

TEST_F(GlobalTest, OnlyWhatTheTierDoesNotHaveIsCopied) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 6; ++step) take(rank, session, state, step);
  });
  // Steps 4 and 5 changed blocks that step 6 changed again: of their segments nothing is live.
  EXPECT_EQ(bundled_in("/pfs/global/node-0", {1, 3}), (std::vector<Version>{1, 3}));
  EXPECT_EQ(bundled_in("/pfs/global/node-0", {1, 6}), (std::vector<Version>{6}));
  const std::uint64_t image = 8 * kPerBlock * (24 + 16);
  EXPECT_LT(bytes_in("/pfs/global/node-0/bundle-000001-0000000006"),
            bytes_in("/pfs/global/node-0/bundle-000001-0000000003"));
  EXPECT_LT(bytes_in("/pfs/global/node-0/bundle-000001-0000000003"), image + 24576);
}

TEST_F(GlobalTest, KeepCountsThereByItself) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 13; ++step) take(rank, session, state, step);
    EXPECT_EQ(listed(session), "13 local, 12 local+global, 9 local+global");
  });
  EXPECT_EQ(manifests_in("/pfs/global/node-0"), 2u);
  EXPECT_EQ(paths_with("/store/node-0/manifest-").size(), 2u) << "nodes keep 13 and 12 only";
  lose_all_nodes();
  play([&](Rank rank, Session& session, TieredState& state) {
    EXPECT_EQ(must(session.restore(9)), 9u);
    EXPECT_TRUE(state == TieredState::at(rank, 9));
  });
}

TEST_F(GlobalTest, BundlesThatNoVersionThereCountsOnGo) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 9; ++step) take(rank, session, state, step);
    state.own.clear();
    state.shared.clear();
    for (std::uint64_t step = 10; step <= 18; ++step) {
      state.step = step;
      must(session.checkpoint());
      must(session.wait());
    }
  });
  EXPECT_TRUE(paths_with("/pfs/global/node-0/bundle-000001-0000000003").empty());
  EXPECT_LE(paths_with("/pfs/global/node-0/bundle-").size(), 2u);
  EXPECT_TRUE(paths_with("/pfs/global/node-0/retired-").empty()) << "the mark goes with the bundle";
}

TEST_F(GlobalTest, AnOlderVersionThatWasRestoredGoesThereWhole) {
  levels_ = "local:1,global:2";
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    take(rank, session, state, 2);  // its copy of the first segment lacks what has changed
    EXPECT_EQ(must(session.restore(1)), 1u);
    for (int i = 0; i < 2; ++i) {
      must(session.checkpoint());
      must(session.wait());
    }
    EXPECT_EQ(listed(session), "4 local+global, 3 local, 2 local+global");
  });
  lose_all_nodes();
  expect_restored(1);
}

TEST_F(GlobalTest, WhatAFileOfACopyLacksIsTakenFromBundles) {
  levels_ = "local:1,global:2";
  take_versions(1, 2);
  for (const char* node : {"0", "1", "2"}) unbundle(std::string("/pfs/global/node-") + node);
  // The copies of the first segments lack what version 2 had changed.
  play([&](Rank rank, Session& session, TieredState& state) {
    EXPECT_EQ(must(session.restore(1)), 1u);
    for (int i = 0; i < 2; ++i) {
      must(session.checkpoint());
      must(session.wait());
    }
    EXPECT_TRUE(state == TieredState::at(rank, 1));
  });
  lose_all_nodes();
  expect_restored(1);
}

TEST_F(GlobalTest, ReplicasAndTheTierTogether) {
  places_ = {0, 1, 2, 3};
  levels_ = "local:1,replicas:2:2,global:4";
  take_versions(1, 7);
  lose("/store/node-1");
  expect_restored(6);
  // Version 8, which has healed it, was due on the global tier.
  lose_all_nodes();
  expect_restored(6);
}

TEST_F(GlobalTest, BlocksThatARankHasLeftToAnotherGoThereToo) {
  levels_ = "replicas:2:1,global:2";
  for (Rank keeper = 0; keeper < 3; ++keeper) {
    // All have the same; then all but one change it, those who stored it for others among them.
    play([&](Rank rank, Session& session, TieredState& state) {
      take(rank, session, state, 1);
      if (rank != keeper) state.shared = noise(state.shared.size(), 100 + rank);
      must(session.checkpoint());
      must(session.wait());
    });
    lose_all_nodes();
    places_ = {2, 0, 1};
    play([&](Rank rank, Session& session, TieredState& state) {
      must(session.restore());
      TieredState expected = TieredState::at(rank, 1);
      if (rank != keeper) expected.shared = noise(expected.shared.size(), 100 + rank);
      EXPECT_TRUE(state == expected) << "rank " << rank;
    });
    lose_all_nodes();
    lose(global_);
    places_ = {0, 1, 2};
  }
}

TEST_F(GlobalTest, RanksOnOneNodeShareADirectoryThere) {
  places_ = {0, 0, 1, 1};
  take_versions(1, 3);
  EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-").size(), 1u);
  EXPECT_EQ(manifests_in("/pfs/global/node-0"), 2u);
  lose_all_nodes();
  places_ = {1, 0, 1, 0};
  expect_restored(3);
}

TEST_F(GlobalTest, ManyVersionsInSeveralRunsLeaveNoMoreThanTheirShare) {
  take_versions(1, 10);
  take_versions(11, 20);
  lose("/store/node-1");
  take_versions(21, 30);
  EXPECT_LE(manifests_in("/pfs/global/node-0"), 3u);
  const std::uint64_t image = 8 * kPerBlock * (24 + 16);
  EXPECT_LT(bytes_in("/pfs/global/node-0/bundle-"), 6 * image + 100000);
  lose_all_nodes();
  play([&](Rank rank, Session& session, TieredState& state) {
    must(session.restore());
    EXPECT_GE(state.step, 28u);
    EXPECT_TRUE(state == TieredState::at(rank, state.step));
  });
}

TEST_F(GlobalTest, ARunOfOneProcessHasATierToo) {
  places_ = {0};
  take_versions(1, 5);
  lose_all_nodes();
  expect_restored(3);
}

TEST_F(GlobalTest, NumbersAreNotTakenTwiceThoughOnlyTheTierRemembers) {
  take_versions(1, 5);
  lose_all_nodes();
  play([&](Rank, Session& session, TieredState&) {
    must(session.restore());
    EXPECT_GT(must(session.checkpoint()), 5u);
  });
}

TEST_F(GlobalTest, WithoutNodesEverythingIsThere) {
  levels_ = "global:1";
  take_versions(1, 4);
  EXPECT_TRUE(paths_with("/store").empty());
  EXPECT_TRUE(paths_with("/pfs/global/node-0/segment-").empty());
  EXPECT_FALSE(paths_with("/pfs/global/node-0/bundle-").empty());
  places_ = {3, 4, 0};
  play([&](Rank rank, Session& session, TieredState& state) {
    EXPECT_EQ(listed(session), "4 local+global, 3 local+global");
    must(session.restore());
    EXPECT_TRUE(state == TieredState::at(rank, 4));
    take(rank, session, state, 5);
  });
  places_ = {1, 1, 1};
  expect_restored(5);
}

TEST_F(GlobalTest, SetsReachOverNodesWhereTheWorkerMayCommunicate) {
  background_ = "thread";
  places_ = {0, 1, 1, 2, 3};
  take_versions(1, 7);
  EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-").size(), 2u) << "of versions 3 and 6";
  for (const char* node : {"1", "2", "3"})
    EXPECT_TRUE(paths_with(std::string("/pfs/global/node-") + node + "/bundle-").empty());
  EXPECT_EQ(manifests_in("/pfs/global/node-0"), 10u);
  lose_all_nodes();
  expect_restored(6);
  lose_all_nodes();
  background_ = "inline";
  places_ = {4, 4, 0, 0, 1};
  expect_restored(6);
}

TEST_F(GlobalTest, WhereTablesOfARankFillTheMemoryEachRankHasABundle) {
  drain_bytes_ = 1;
  for (const char* background : {"inline", "thread"}) {
    background_ = background;  // ranks of one node, whose files are read; of several, who are asked
    places_ = background_ == "inline" ? std::vector<unsigned>{0, 0, 0, 0}
                                      : std::vector<unsigned>{0, 1, 1, 2};
    take_versions(1, 3);
    EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-000001-0000000003-").size(), 4u);
    EXPECT_EQ(manifests_in("/pfs/global/node-0"), 4u);
    const std::uint64_t first = bytes_in("/pfs/global/node-0/bundle-");
    take_versions(4, 6);
    EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-000002-0000000006-").size(), 4u);
    EXPECT_LT(bytes_in("/pfs/global/node-0/bundle-000002-"), first / 2)
        << "only what the tier does not have";
    lose_all_nodes();
    expect_restored(6);
    lose_all_nodes();
    lose(global_);
  }
}

TEST_F(GlobalTest, OfSeveralBundlesOfAnAggregatorNoneCountsIfTheLastFails) {
  drain_bytes_ = 1;
  places_ = {0, 0, 0};
  std::atomic<bool> fails = true;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = fails && operation.kind == os::Operation::Kind::rename &&
                     operation.path.find("/bundle-000001-0000000003-000002") != std::string::npos;
    return hit ? os::Action{.error = EIO} : os::Action{};
  });
  files_of_ = [&](Rank) -> os::Files* { return &faulty; };
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 6; ++step) take(rank, session, state, step);
  });
  EXPECT_TRUE(logged("version 3: global tier"));
  EXPECT_TRUE(paths_with("/pfs/global/node-0/bundle-000001-0000000003-000002").empty());
  EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-000001-0000000006-").size(), 3u);
  EXPECT_EQ(manifests_in("/pfs/global/node-0"), 3u) << "those of version 6";
  lose_all_nodes();
  expect_restored(6);
}

TEST_F(GlobalTest, ASegmentThatAnotherNodeCannotReadFailsTheDrainAndNothingElse) {
  background_ = "thread";
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    take(rank, session, state, 2);
    must(session.wait());
    if (rank == 2) damage("/store/node-2/segment-000001-0000000001");
    take(rank, session, state, 3);
    EXPECT_EQ(listed(session), "3 local, 2 local");
    EXPECT_NE(session.stats().last_failure.find("global tier"), std::string::npos);
    // Its blocks are unsafe now, and are written again.
    for (std::uint64_t step = 4; step <= 6; ++step) take(rank, session, state, step);
    EXPECT_EQ(listed(session), "6 local+global, 5 local");
  });
  lose_all_nodes();
  expect_restored(6);
}

TEST_F(GlobalTest, AThreadOfItsOwnDrainsWhileVersionsGoOn) {
  background_ = "thread";
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 30; ++step) {
      state = TieredState::at(rank, step);
      must(session.checkpoint());
    }
    must(session.wait());
    EXPECT_NE(listed(session).find("30 local+global"), std::string::npos) << listed(session);
  });
  lose_all_nodes();
  expect_restored(30);
}

/// A drain that does not end before the next version that is due there.
class LateDrainTest : public GlobalTest {
 protected:
  /// Bundles are not written before `open_` is set.
  os::Action hold(const os::Operation& operation) {
    const bool draining = operation.kind == os::Operation::Kind::create &&
                          operation.path.find("/pfs/global/node-0/bundle-") == 0;
    while (draining && !open_) std::this_thread::yield();
    return {};
  }
  std::atomic<bool> open_ = false;
};

TEST_F(LateDrainTest, IsSkippedWhereVersionsMayBe) {
  background_ = "thread";
  levels_ = "local:1,global:2";
  adjust_ = [](Rank, Options& options) { options.late = "skip"; };
  os::FaultyFiles held(memory_, [this](const os::Operation& operation) { return hold(operation); });
  files_of_ = [&](Rank) -> os::Files* { return &held; };
  std::atomic<int> passed = 0;
  play([&](Rank rank, Session& session, TieredState& state) {
    Version newest = 0;
    for (std::uint64_t step = 1; newest < 6; ++step) {
      state = TieredState::at(rank, step);
      newest = must(session.checkpoint());
    }
    if (++passed == 3) open_ = true;
    must(session.wait());
    EXPECT_NE(listed(session).find("2 local+global"), std::string::npos) << listed(session);
  });
  EXPECT_TRUE(logged("version 4 does not go to the global tier: version 2 is still on its way"));
}

/// Bundles take longer to write than ranks wait for a silent peer.
class SlowTierTest : public GlobalTest {
 protected:
  SlowTierTest() {
    background_ = "thread";
    patience_ns_ = 1'000'000'000;
    adjust_ = [](Rank, Options& options) { options.timeout = "1s"; };
    files_of_ = [this](Rank) -> os::Files* { return &slow_; };
  }
  os::FaultyFiles slow_{memory_, [](const os::Operation& operation) {
                          if (operation.kind == os::Operation::Kind::create &&
                              operation.path.starts_with("/pfs/global/node-0/bundle-"))
                            std::this_thread::sleep_for(std::chrono::milliseconds(2500));
                          return os::Action{};
                        }};
};

TEST_F(SlowTierTest, NobodyTakesTheAggregatorOfANodeForLost) {
  places_ = {0, 0, 0};
  take_versions(1, 3);
  lose_all_nodes();
  expect_restored(3);
}

TEST_F(SlowTierTest, NorThatOfRanksOnOtherNodes) {
  take_versions(1, 3);
  EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-").size(), 1u);
  lose_all_nodes();
  expect_restored(3);
}

TEST_F(SlowTierTest, NorWhereOnlyCallsMayCommunicate) {
  one_thread_ = true;
  adjust_ = [](Rank, Options& options) {
    options.timeout = "1s";
    options.aggregate = 32;
  };
  take_versions(1, 3);
  EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-").size(), 1u);
  lose_all_nodes();
  expect_restored(3);
}

TEST_F(SlowTierTest, NorOneThatWritesInsideItsCalls) {
  background_ = "inline";
  take_versions(1, 3);
  EXPECT_EQ(paths_with("/bundle-").size(), 3u);
  lose_all_nodes();
  expect_restored(3);
}

/// Opens on all ranks, and expects the same error from all.
class WrongGlobalTest : public GlobalTest {
 protected:
  void expect_refused(Code code, std::initializer_list<const char*> words) {
    std::vector<std::string> messages(places_.size());
    on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
      const auto opened = try_open(rank, std::move(group));
      expect_error(opened, code, words);
      if (!opened) messages[rank] = opened.error().message();
    });
    for (const std::string& message : messages) EXPECT_EQ(message, messages.front());
    for (const std::string& path : memory_.paths())
      EXPECT_TRUE(path.ends_with("/lock") || path == "/blocked") << path;
  }
  void block() {
    must(must(memory_.create("/blocked", false))->write(0, std::vector<std::byte>(8)));
  }
};

TEST_F(WrongGlobalTest, ATierThatIsTheStoreIsRefused) {
  global_ = "/store/";
  expect_refused(Code::invalid_argument, {"global /store lies in `store` /store", "of its own"});
}

TEST_F(WrongGlobalTest, ATierInsideTheStoreIsRefused) {
  global_ = "/x/../store/node-1/global";
  expect_refused(Code::invalid_argument, {"lies in `store`"});
}

TEST_F(WrongGlobalTest, ATierThatCannotBeWrittenByOneRankIsRefusedByAll) {
  os::FaultyFiles faulty(memory_, [](const os::Operation& operation) {
    const bool there = operation.kind == os::Operation::Kind::make_directory &&
                       operation.path.starts_with("/pfs/global");
    return os::Action{.error = there ? EROFS : 0};
  });
  files_of_ = [&](Rank rank) -> os::Files* {
    if (rank == 1) return &faulty;
    return &memory_;
  };
  expect_refused(Code::io, {"global", "rank 1", "/pfs/global/node-1"});
}

TEST_F(WrongGlobalTest, ATierThatIsNoDirectoryIsRefused) {
  block();
  global_ = "/blocked";
  expect_refused(Code::invalid_argument, {"global", "/blocked/node-"});
}

TEST_F(WrongGlobalTest, AStoreThatCannotBeWrittenByOneRankIsRefusedByAll) {
  block();
  adjust_ = [](Rank rank, Options& options) {
    if (rank == 2) options.store = "/blocked/store";
  };
  expect_refused(Code::invalid_argument, {"rank 2", "/blocked"});
}

TEST_F(WrongGlobalTest, ATierThatRanksNameDifferentlyIsRefused) {
  adjust_ = [](Rank rank, Options& options) {
    if (rank == 2) options.global = "/elsewhere";
  };
  expect_refused(Code::invalid_argument, {"options differ between ranks", "global=/elsewhere"});
}

TEST_F(WrongGlobalTest, ATierOfAnotherStoreIsAMixture) {
  take_versions(1, 3);
  lose("/store");
  levels_ = "local:1";
  std::string global = std::exchange(global_, "");
  take_versions(1, 2);
  levels_ = "local:1,global:3";
  global_ = global;
  on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
    expect_error(try_open(rank, std::move(group)), Code::invalid_argument, {"mixture of stores"});
  });
}

}  // namespace
}  // namespace belay::session
