// SPDX-License-Identifier: Apache-2.0
// Incremental completion: begin(), add(), commit().
#include "session/session_test.hpp"

namespace belay::session {
namespace {

class Completion : public SessionTest {
 protected:
  Completion() {
    must(session_.protect("a", a_));
    must(session_.protect("b", b_));
  }
  /// Fills a_ and b_ with what version `version` holds.
  void look_at(Version version) {
    a_.clear();
    b_.clear();
    must(session_.restore(version));
  }

  std::vector<std::uint64_t> a_ = noise(10 * kPerBlock, 1);
  std::vector<std::uint64_t> b_ = noise(10 * kPerBlock, 2);
  Session session_ = open();
};

TEST_F(Completion, ARegionWrittenAfterItsAddKeepsItsAddedContent) {
  const auto added = a_;
  must(session_.begin());
  must(session_.add("a"));
  a_ = noise(10 * kPerBlock, 3);
  const Version version = must(session_.commit());
  EXPECT_EQ(must(session_.wait()), version);
  EXPECT_TRUE(session_.stats().last.balances());
  look_at(version);
  EXPECT_EQ(a_, added);
  EXPECT_EQ(b_, noise(10 * kPerBlock, 2)) << "commit() captures what was not added";
}

TEST_F(Completion, CommitWithoutAddIsACheckpoint) {
  must(session_.begin());
  EXPECT_EQ(must(session_.commit()), 1u);
  EXPECT_EQ(must(session_.wait()), 1u);
}

TEST_F(Completion, RegionsMayBeAddedInAnyOrderAndTheNextVersionIsDifferential) {
  must(session_.begin());
  must(session_.add("b"));
  must(session_.add("a"));
  must(session_.commit());
  EXPECT_EQ(take_ledger(session_).written_bytes, 0u);
}

TEST_F(Completion, AnAddedRegionMayMoveBeforeTheCommit) {
  must(session_.begin());
  must(session_.add("a"));
  a_ = std::vector<std::uint64_t>(50'000, 4);
  must(session_.commit());
  must(session_.wait());
  look_at(1);
  EXPECT_EQ(a_, noise(10 * kPerBlock, 1));
}

TEST_F(Completion, AddingTwiceIsAnErrorThatCostsNothing) {
  must(session_.begin());
  must(session_.add("a"));
  expect_error(session_.add("a"), Code::invalid_argument, {"'a'", "already"});
  const Version version = must(session_.commit());
  expect_error(session_.wait(), Code::invalid_argument, {"'a'"});  // as of an ignored call
  EXPECT_EQ(must(session_.wait()), version);
}

TEST_F(Completion, AddingAnUnknownRegionIsAnErrorThatCostsNothing) {
  must(session_.begin());
  expect_error(session_.add("c"), Code::not_found, {"'c'"});
  const Version version = must(session_.commit());
  (void)session_.wait();
  EXPECT_EQ(must(session_.wait()), version);
}

TEST_F(Completion, AddAndCommitNeedABegin) {
  expect_error(session_.add("a"), Code::invalid_argument, {"begin()"});
  expect_error(session_.commit(), Code::invalid_argument, {"begin()"});
}

TEST_F(Completion, OtherCollectiveCallsAreRefusedUntilTheCommit) {
  must(session_.begin());
  expect_error(session_.checkpoint(), Code::invalid_argument, {"commit()"});
  expect_error(session_.begin(), Code::invalid_argument, {"commit()"});
  expect_error(session_.restore(), Code::invalid_argument, {"commit()"});
  expect_error(session_.wait(), Code::invalid_argument, {"commit()"});
  EXPECT_EQ(must(session_.commit()), 1u);
}

TEST_F(Completion, AnAddedRegionCannotBeProtectedElsewhereBeforeTheCommit) {
  std::vector<std::uint64_t> other;
  must(session_.begin());
  must(session_.add("a"));
  expect_error(session_.protect("a", other), Code::invalid_argument, {"'a'", "commit()"});
  must(session_.protect("b", other));
  EXPECT_EQ(must(session_.commit()), 1u);
}

TEST_F(Completion, ARegionProtectedAfterTheBeginIsPartOfTheVersion) {
  must(session_.begin());
  std::vector<std::uint64_t> late = noise(3, 9);
  must(session_.protect("late", late));
  must(session_.commit());
  must(session_.wait());
  late.clear();
  look_at(1);
  EXPECT_EQ(late, noise(3, 9));
}

TEST_F(Completion, ARegionUnprotectedBeforeTheCommitIsNotPartOfIt) {
  must(session_.begin());
  must(session_.unprotect("b"));
  must(session_.commit());
  must(session_.wait());
  EXPECT_EQ(session_.versions().front().regions.size(), 1u);
}

TEST_F(Completion, ClosingInsteadOfCommittingSaysSoAndKeepsTheFormerVersion) {
  take(session_);
  must(session_.begin());
  must(session_.add("a"));
  expect_error(session_.close(), Code::invalid_argument, {"version 2", "commit()"});
  auto again = open();
  EXPECT_EQ(again.latest(), 1u);
  EXPECT_EQ(again.versions().size(), 1u);
}

TEST_F(Completion, DestroyingInsteadOfCommittingKeepsTheFormerVersion) {
  take(session_);
  must(session_.begin());
  must(session_.add("a"));
  { const Session gone = std::move(session_); }
  session_ = open();
  EXPECT_EQ(session_.latest(), 1u);
}

TEST_F(Completion, AddOnAThreadsWorkerLeavesTheRegionFreeAtOnce) {
  Options threaded = options();
  threaded.background = "thread";
  threaded.store = "/threaded";
  auto session = open(threaded);
  must(session.protect("a", a_));
  const auto added = a_;
  must(session.begin());
  must(session.add("a"));
  std::fill(a_.begin(), a_.end(), 0);
  const Version version = must(session.commit());
  EXPECT_EQ(must(session.wait()), version);
  must(session.restore());
  EXPECT_EQ(a_, added);
}

}  // namespace
}  // namespace belay::session
