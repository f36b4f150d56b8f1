// SPDX-License-Identifier: Apache-2.0
// What stays in a store over many versions: as many segments, versions and bytes as promised.
#include "format/manifest.hpp"
#include "session/session_test.hpp"

#include <set>

namespace belay::session {
namespace {

class LongRun : public SessionTest {
 protected:
  Manifest newest_manifest() {
    const auto paths = files_named("manifest-");
    return must(format::decode_manifest(must(memory_.peek(paths.back()))));
  }
};

TEST_F(LongRun, SegmentsStayWithinTheirLimitOver200Versions) {
  Options few = options();
  few.segments = 5;
  std::vector<std::uint64_t> numbers = noise(64 * kPerBlock, 1);
  {
    auto session = open(few);
    must(session.protect("numbers", numbers));
    for (std::uint64_t i = 0; i < 200; ++i) {
      numbers[(i * 7 % 64) * kPerBlock] = i;
      numbers[(i * 11 % 64) * kPerBlock + 1] = i;
      take(session);
      ASSERT_LE(newest_manifest().segments.size(), 5u) << "version " << i + 1;
      ASSERT_LE(files_named("segment-").size(), 11u) << "those of two versions, and one to remove";
    }
    must(session.close());
  }
  auto session = open(few);
  std::vector<std::uint64_t> found;
  must(session.protect("numbers", found));
  EXPECT_EQ(must(session.restore()), 200u);
  EXPECT_EQ(found, numbers);
}

TEST_F(LongRun, BytesInTheStoreStayInProportionToTheImage) {
  auto session = open();
  std::vector<std::uint64_t> numbers = noise(256 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  for (std::uint64_t i = 0; i < 200; ++i) {
    for (std::uint64_t j = 0; j < 13; ++j) numbers[((i * 13 + j) * 37 % 256) * kPerBlock] = i + j;
    take(session);
    ASSERT_LE(memory_.total_bytes(), 6 * 256 * kBlock) << "version " << i + 1;
  }
}

TEST_F(LongRun, CarryWritesAtMostASixteenthOfTheImageBesidesTheChanges) {
  Options many = options();
  many.segments = 200;
  auto session = open(many);
  std::vector<std::uint64_t> numbers = noise(256 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  take(session);
  for (std::uint64_t i = 1; i < 100; ++i) {
    for (std::uint64_t j = 0; j < 26; ++j) numbers[((i * 26 + j) * 37 % 256) * kPerBlock] = i + j;
    const Ledger ledger = take_ledger(session);
    ASSERT_LE(ledger.carried_bytes, 256 * kBlock / 16 + kBlock) << "version " << i + 1;
    ASSERT_EQ(ledger.written_bytes - ledger.carried_bytes, 26 * kBlock);
  }
}

TEST_F(LongRun, FewerSegmentsAllowedThanBeforeAreReachedAtOnce) {
  std::vector<std::uint64_t> numbers = noise(64 * kPerBlock, 1);
  Options many = options();
  many.segments = 40;
  {
    auto session = open(many);
    must(session.protect("numbers", numbers));
    for (std::uint64_t i = 0; i < 30; ++i) {
      numbers[(i * 2) * kPerBlock] = i;
      take(session);
    }
    must(session.close());
  }
  Options few = options();
  few.segments = 2;
  auto session = open(few);
  std::vector<std::uint64_t> found;
  must(session.protect("numbers", found));
  must(session.restore());
  EXPECT_EQ(found, numbers);
  take(session);
  EXPECT_LE(newest_manifest().segments.size(), 2u);
  found.clear();
  must(session.restore());
  EXPECT_EQ(found, numbers);
}

TEST_F(LongRun, KeepsAsManyVersionsAsAsked) {
  for (const std::uint64_t keep : {1u, 2u, 5u}) {
    Options kept = options();
    kept.store = "/store-" + std::to_string(keep);
    kept.keep = keep;
    auto session = open(kept);
    std::uint64_t step = 0;
    must(session.protect("step", step));
    for (step = 1; step <= 10; ++step) {
      take(session);
      const auto versions = session.versions();
      ASSERT_EQ(versions.size(), std::min(step, keep));
      for (std::uint64_t i = 0; i < versions.size(); ++i) EXPECT_EQ(versions[i].version, step - i);
      EXPECT_EQ(session.latest(), step);
    }
    must(session.restore(Version{11 - keep}));
    EXPECT_EQ(step, 11 - keep);
  }
}

TEST_F(LongRun, RetiredFilesAreGone) {
  auto session = open();
  std::vector<std::uint64_t> numbers(64 * kPerBlock);
  must(session.protect("numbers", numbers));
  for (std::uint64_t i = 0; i < 10; ++i) {
    numbers = noise(64 * kPerBlock, i);  // nothing of the former version is left
    take(session);
  }
  EXPECT_EQ(files_named("manifest-").size(), 2u);
  EXPECT_EQ(files_named("segment-").size(), 2u);
}

TEST_F(LongRun, VersionsOfEarlierRunsStayUntilThisRunHasRestored) {
  std::uint64_t step = 0;
  {
    auto session = open();
    must(session.protect("step", step));
    for (step = 1; step <= 2; ++step) take(session);
    must(session.close());
  }
  {
    auto session = open();
    must(session.protect("step", step));
    for (step = 101; step <= 105; ++step) take(session);
    std::set<Version> left;
    for (const VersionInfo& info : session.versions()) left.insert(info.version);
    EXPECT_EQ(left, (std::set<Version>{1, 2, 6, 7}));
    must(session.restore(Version{2}));
    EXPECT_EQ(step, 2u) << "the forgetful user can still go back";
    take(session);
    EXPECT_EQ(session.versions().size(), 2u);
    must(session.close());
  }
  EXPECT_EQ(files_named("manifest-").size(), 2u);
}

TEST_F(LongRun, NumbersAndRunsGoOnAfterARestart) {
  std::uint64_t step = 0;
  for (Version expected = 1; expected <= 4; ++expected) {
    auto session = open();
    must(session.protect("step", step));
    EXPECT_EQ(take(session), expected);
    EXPECT_EQ(session.versions().front().run, expected);
    must(session.close());
  }
}

TEST_F(LongRun, RunRecordsOfEarlierRunsGoInTheEnd) {
  std::uint64_t step = 0;
  for (int i = 0; i < 5; ++i) {
    auto session = open();
    must(session.protect("step", step));
    if (session.latest()) must(session.restore());
    ++step;
    take(session);
    must(session.close());
  }
  EXPECT_EQ(files_named("run-").size(), 1u);
  EXPECT_EQ(step, 5u);
}

}  // namespace
}  // namespace belay::session
