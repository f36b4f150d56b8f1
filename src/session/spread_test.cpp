// SPDX-License-Identifier: Apache-2.0
// Files of the global tier that ranks of several nodes share, though only calls may communicate.
#include "session/tiered_session_test.hpp"

namespace belay::session {
namespace {

/// Nobody but the calls may communicate, and `aggregate` says how many share a file.
class SpreadInCallsTest : public TieredSessionTest {
 protected:
  SpreadInCallsTest() {
    levels_ = "local:1,global:3";
    global_ = "/pfs/global";
    background_ = "thread";
    one_thread_ = true;
    places_ = {0, 1, 2, 3, 4};
    adjust_ = [](Rank, Options& options) { options.aggregate = 3; };
  }
  void lose_all_nodes() { lose("/store"); }
  void expect_two_files_a_version() {
    take_versions(1, 7);
    EXPECT_EQ(paths_with("/pfs/global/node-0/bundle-").size(), 2u) << "of versions 3 and 6";
    EXPECT_EQ(paths_with("/pfs/global/node-2/bundle-").size(), 2u);
    EXPECT_EQ(paths_with("/bundle-").size(), 4u);
    EXPECT_TRUE(logged("2 files on the global tier, as `aggregate` says, written inside"));
    lose_all_nodes();
    expect_restored(6);
  }
};

TEST_F(SpreadInCallsTest, SetsReachOverNodes) { expect_two_files_a_version(); }

TEST_F(SpreadInCallsTest, SoTheyDoWhereEverythingIsInline) {
  background_ = "inline";
  one_thread_ = false;
  expect_two_files_a_version();
}

TEST_F(SpreadInCallsTest, TheDefaultHoldsNobodyUp) {
  adjust_ = nullptr;
  take_versions(1, 3);
  EXPECT_EQ(paths_with("/bundle-").size(), 5u);
  EXPECT_TRUE(logged("5 files on the global tier, each of ranks of one node; 1 would do"));
}

TEST_F(SpreadInCallsTest, VersionsThatFollowAtOnceAllArrive) {
  levels_ = "local:1,global:1";
  play([&](Rank rank, Session& session, TieredState& state) {
    for (std::uint64_t step = 1; step <= 12; ++step) {
      state = TieredState::at(rank, step);
      must(session.checkpoint());
      if (step == 1) continue;
      EXPECT_EQ(listed(session).find(std::to_string(step - 1) + " local+global"), 0u)
          << listed(session);
    }
  });
  EXPECT_EQ(paths_with("/pfs/global/node-2/bundle-000001-0000000012").size(), 1u);
  lose_all_nodes();
  expect_restored(12);
}

TEST_F(SpreadInCallsTest, ASegmentThatAnotherNodeCannotReadFailsTheDrainAndNothingElse) {
  play([&](Rank rank, Session& session, TieredState& state) {
    take(rank, session, state, 1);
    take(rank, session, state, 2);
    // In the middle of a block.
    if (rank == 4) must(memory_.flip("/store/node-4/segment-000001-0000000001-000004", 8 * 700));
    take(rank, session, state, 3);
    EXPECT_EQ(listed(session), "3 local, 2 local");
    EXPECT_NE(session.stats().last_failure.find("global tier"), std::string::npos);
    for (std::uint64_t step = 4; step <= 6; ++step) take(rank, session, state, step);
    EXPECT_EQ(listed(session), "6 local+global, 5 local");
  });
  lose_all_nodes();
  expect_restored(6);
}

TEST_F(SpreadInCallsTest, OptionsThatOnlySomeRanksWereGivenAreRefused) {
  adjust_ = [](Rank rank, Options& options) {
    if (rank == 0) options.aggregate = 32;
  };
  on_ranks([&](Rank rank, std::unique_ptr<ranks::Group> group) {
    expect_error(try_open(rank, std::move(group)), Code::invalid_argument,
                 {"rank 0 has aggregate=32, rank 1 has aggregate="});
  });
}

}  // namespace
}  // namespace belay::session
