// SPDX-License-Identifier: Apache-2.0
// What a session makes of a store that was damaged, before it is opened or while it is in use.
#include "session/session_test.hpp"

namespace belay::session {
namespace {

class StoreDamage : public SessionTest {
 protected:
  /// Versions 1 and 2, the second with some blocks of its own.
  void save_two() {
    auto session = open();
    auto numbers = first_;
    must(session.protect("numbers", numbers));
    take(session);
    numbers = second_;
    take(session);
    must(session.close());
  }
  static std::string path_of(const char* kind, int version) {
    return "/store/node-host-a/" + std::string(kind) + "-000001-000000000" +
           std::to_string(version) + "-000000";
  }
  static std::vector<std::uint64_t> changed(std::vector<std::uint64_t> numbers) {
    for (std::size_t i = 0; i < 5; ++i) ++numbers[i * kPerBlock];
    return numbers;
  }

  const std::vector<std::uint64_t> first_ = noise(20 * kPerBlock, 1);
  const std::vector<std::uint64_t> second_ = changed(first_);
  std::vector<std::uint64_t> found_;
};

TEST_F(StoreDamage, ADamagedManifestFallsBackToTheOlderVersionWithAWarning) {
  save_two();
  must(memory_.flip(path_of("manifest", 2), 5000));
  auto session = open();
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("numbers", found_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(found_, first_);
  EXPECT_TRUE(logged("version 2"));
  found_ = second_;
  EXPECT_GT(take(session), 2u);
}

TEST_F(StoreDamage, ADamagedBlockFallsBackToTheOlderVersionWithAWarning) {
  save_two();
  must(memory_.flip(path_of("segment", 2), 8 * 400));
  auto session = open();
  EXPECT_EQ(session.latest(), 2u) << "blocks are read by restore() only";
  must(session.protect("numbers", found_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(found_, first_);
  EXPECT_EQ(session.latest(), 1u);
  EXPECT_TRUE(logged("version 2 cannot be restored"));
  EXPECT_TRUE(logged("'numbers'"));
}

TEST_F(StoreDamage, ABlockThatTheSegmentHasTwiceMayBeDamagedOnce) {
  Options options = SessionTest::options();
  options.dedup = "none";
  {
    auto session = open(options);
    std::vector<std::uint64_t> same(4 * kPerBlock, 7);
    must(session.protect("numbers", same));
    take(session);
    must(session.close());
  }
  must(memory_.flip(path_of("segment", 1), 8 * 400));
  auto session = open(options);
  must(session.protect("numbers", found_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(found_, std::vector<std::uint64_t>(4 * kPerBlock, 7));
}

TEST_F(StoreDamage, AskedForByNumberADamagedVersionIsAnError) {
  save_two();
  must(memory_.flip(path_of("segment", 2), 8 * 400));
  auto session = open();
  must(session.protect("numbers", found_));
  expect_error(session.restore(Version{2}), Code::corruption, {"version 2", "segment-"});
  EXPECT_EQ(must(session.restore()), 1u);
}

TEST_F(StoreDamage, AMissingSegmentFallsBackToTheOlderVersion) {
  save_two();
  must(memory_.erase(path_of("segment", 2)));
  auto session = open();
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("numbers", found_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(found_, first_);
}

TEST_F(StoreDamage, AShortSegmentFallsBackToTheOlderVersion) {
  save_two();
  must(memory_.cut(path_of("segment", 2), 100));
  auto session = open();
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("numbers", found_));
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(found_, first_);
}

TEST_F(StoreDamage, WhereEverythingIsDamagedLatestIsNotEmptyAndRestoreSaysWhat) {
  save_two();
  must(memory_.flip(path_of("segment", 1), 8 * (128 + 6 * kBlock)));  // both versions need it
  auto session = open();
  must(session.protect("numbers", found_));
  expect_error(session.restore(), Code::corruption,
               {"version 2", "version 1", "segment-", "/store", "start anew"});
  EXPECT_TRUE(session.latest());
  expect_error(session.restore(), Code::corruption, {});
}

TEST_F(StoreDamage, WhereAllManifestsAreGoneLatestIsNotEmpty) {
  save_two();
  must(memory_.erase(path_of("manifest", 1)));
  must(memory_.erase(path_of("manifest", 2)));
  auto session = open();
  EXPECT_EQ(session.latest(), 2u);
  must(session.protect("numbers", found_));
  expect_error(session.restore(), Code::corruption, {"/store"});
  EXPECT_TRUE(session.versions().empty());
  found_ = first_;
  EXPECT_GT(take(session), 2u) << "its numbers are not used again";
}

TEST_F(StoreDamage, ASwappedManifestIsNotBelieved) {
  save_two();
  const auto older = must(memory_.peek(path_of("manifest", 1)));
  must(memory_.erase(path_of("manifest", 2)));
  const auto file = must(memory_.create(path_of("manifest", 2), false));
  must(file->write(0, older));
  auto session = open();
  EXPECT_EQ(session.latest(), 1u);
  EXPECT_TRUE(logged("another file's"));
}

TEST_F(StoreDamage, ASegmentDeletedUnderneathIsWrittenAgain) {
  auto session = open();
  found_ = first_;
  must(session.protect("numbers", found_));
  take(session);
  must(memory_.erase(path_of("segment", 1)));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock);
  EXPECT_TRUE(logged("missing"));
  found_.clear();
  EXPECT_EQ(must(session.restore()), 2u);
  EXPECT_EQ(found_, first_);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
}

TEST_F(StoreDamage, ASegmentCutShortUnderneathIsWrittenAgain) {
  auto session = open();
  found_ = first_;
  must(session.protect("numbers", found_));
  take(session);
  must(memory_.cut(path_of("segment", 1), 4096));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock);
  found_.clear();
  EXPECT_EQ(must(session.restore()), 2u);
  EXPECT_EQ(found_, first_);
}

TEST_F(StoreDamage, OfAFewSegmentsOnlyTheMissingOnesBlocksAreWrittenAgain) {
  auto session = open();
  found_ = first_;
  must(session.protect("numbers", found_));
  take(session);
  found_ = second_;
  take(session);
  must(memory_.erase(path_of("segment", 2)));
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes - ledger.carried_bytes, 5 * kBlock);
  found_.clear();
  EXPECT_EQ(must(session.restore()), 3u);
  EXPECT_EQ(found_, second_);
}

TEST_F(StoreDamage, TheDirectoryDeletedUnderneathIsMadeAgainAndTheNextVersionIsWhole) {
  auto session = open();
  found_ = first_;
  must(session.protect("numbers", found_));
  take(session);
  must(memory_.erase("/store/node-host-a"));
  found_ = second_;
  EXPECT_EQ(take_ledger(session).unchanged_bytes, 0u) << "nothing of the lost version is safe";
  must(session.close());
  found_.clear();
  auto again = open();
  must(again.protect("numbers", found_));
  EXPECT_EQ(must(again.restore()), 2u);
  EXPECT_EQ(found_, second_);
}

TEST_F(StoreDamage, TheLastVersionOfARunThatFailedDoesNotHideTheOnesBefore) {
  save_two();
  // A torn vote of a third version: temporary manifest and half a segment.
  for (const char* name :
       {"manifest-000001-0000000003-000000.tmp", "segment-000001-0000000003-000000"}) {
    const auto file = must(memory_.create("/store/node-host-a/" + std::string(name), false));
    must(file->write(0, std::vector<std::byte>(100)));
  }
  {
    auto session = open();
    EXPECT_EQ(session.latest(), 2u);
    must(session.protect("numbers", found_));
    must(session.restore());
    EXPECT_EQ(found_, second_);
    ++found_[0];
    EXPECT_GT(take(session), 3u) << "3 is taken";
    must(session.close());
  }
  EXPECT_TRUE(files_named("manifest-000001-0000000003").empty());
  EXPECT_TRUE(files_named("segment-000001-0000000003").empty());
}

}  // namespace
}  // namespace belay::session
