// SPDX-License-Identifier: Apache-2.0
// Versions of different levels in one session: what each of them stores, what survives which loss,
// and what stays.
#include "session/tiered_session_test.hpp"

namespace belay::session {
namespace {

class LevelsTest : public TieredSessionTest {
 protected:
  LevelsTest() { levels_ = "local:1,replicas:2:4"; }

  /// Copies on all nodes that belong to this version.
  std::size_t copies_of(Version version) const {
    return paths_with("/" + format::copy_name({{1, version}, 0}).substr(0, 22)).size();
  }
};

TEST_F(LevelsTest, AVersionOfLevelLocalStaysOnItsNode) {
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    const std::uint64_t image = sizeof(state.step) + 8 * (state.own.size() + state.shared.size());
    EXPECT_EQ(session.stats().last.written_bytes, image) << "equal blocks of others do not count";
    EXPECT_EQ(session.versions().front().level, "local");
  });
  EXPECT_TRUE(paths_with("/copy-").empty());
  EXPECT_EQ(paths_with("/manifest-").size(), 3u) << "one for each rank, on its own node";
}

TEST_F(LevelsTest, AStrongerVersionWritesExactlyWhatIsNotYetSafeEnough) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 3; ++step) take(rank, session, state, step);
    EXPECT_LT(session.stats().last.written_bytes, 10 * kBlock) << "a local version: changes only";
    take(rank, session, state, 4);
    const Ledger promoted = session.stats().last;
    EXPECT_EQ(promoted.untouched_bytes + promoted.unchanged_bytes, 0u) << "nothing was on 2 nodes";
    for (std::uint64_t step = 5; step <= 7; ++step) take(rank, session, state, step);
    take(rank, session, state, 8);
    // Since version 4 only every sixth or eighth block has changed, and these again and again.
    const Ledger again = session.stats().last;
    EXPECT_EQ(again.written_bytes + again.duplicate_elsewhere_bytes,
              promoted.protected_bytes - again.unchanged_bytes - again.duplicate_here_bytes);
    EXPECT_GT(again.unchanged_bytes, promoted.protected_bytes * 3 / 4);
  });
  EXPECT_EQ(copies_of(7), 0u);
  EXPECT_GT(copies_of(8), 0u);
}

TEST_F(LevelsTest, KeepCountsForEachLevel) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 7; ++step) take(rank, session, state, step);
    EXPECT_EQ(listed(session), "7 local, 6 local, 4 replicas:2");
    take(rank, session, state, 8);
    EXPECT_EQ(listed(session), "8 replicas:2, 7 local, 4 replicas:2");
    take(rank, session, state, 9);
    EXPECT_EQ(listed(session), "9 local, 8 replicas:2, 4 replicas:2");
    for (std::uint64_t step = 10; step <= 13; ++step) take(rank, session, state, step);
    EXPECT_EQ(listed(session), "13 local, 12 replicas:2, 8 replicas:2");
  });
  // The levels of versions are known again when the store is opened.
  play([&](Rank rank, Session& session, TieredState& state) {
    EXPECT_EQ(listed(session), "13 local, 12 replicas:2, 8 replicas:2");
    must(session.restore());
    take(rank, session, state, 14);
    EXPECT_EQ(listed(session), "14 local, 13 local, 12 replicas:2, 8 replicas:2");
  });
}

TEST_F(LevelsTest, TheLossOfANodeTakesLocalVersionsAndLeavesTheStronger) {
  take_versions(1, 7);
  lose("/store/node-1");
  expect_restored(4);
  EXPECT_TRUE(logged("something of version 4 was lost; a new version puts it back"));
  // The healing version is as strong as the one that came back.
  lose("/store/node-0");
  expect_restored(4);
}

TEST_F(LevelsTest, AllNodesThereTheNewestComesBackWhateverItsLevel) {
  take_versions(1, 7);
  expect_restored(7);
}

TEST_F(LevelsTest, ALocalVersionMayBeTheOnlyOneAndIsLostWithItsNode) {
  take_versions(1, 2);
  lose("/store/node-2");
  play([&](Rank, Session& session, TieredState&) {
    EXPECT_TRUE(session.latest());
    expect_error(session.restore(), Code::corruption, {"no version"});
  });
}

TEST_F(LevelsTest, ALostCopyIsMadeAgainByTheNextVersionThatNeedsIt) {
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 4; ++step) take(rank, session, state, step);
  });
  for (const std::string& path : paths_with("/copy-")) must(memory_.erase(path));
  play([&](Rank rank, Session& session, TieredState& state) {
    must(session.restore());
    EXPECT_TRUE(state == TieredState::at(rank, 4));
    EXPECT_NE(listed(session).find("replicas:2"), std::string::npos);
  });
  lose("/store/node-1");
  expect_restored(4);
}

TEST_F(LevelsTest, ThreeLevelsSurviveWhatEachPromises) {
  places_ = {0, 1, 2, 3};
  levels_ = "local:1,replicas:2:2,replicas:3:4";
  take_versions(1, 7);
  lose("/store/node-3");
  lose("/store/node-0");
  expect_restored(4);
}

}  // namespace
}  // namespace belay::session
