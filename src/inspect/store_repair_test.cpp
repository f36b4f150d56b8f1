// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_repair.hpp"

#include "inspect/store_fixture_test.hpp"
#include "inspect/store_prune.hpp"
#include "os/faulty_files.hpp"

#include <cerrno>

namespace belay::inspect {
namespace {

CheckReport check(const StoreView& view) {
  auto report = check_store(view, 1, [](std::uint64_t, std::uint64_t) {});
  EXPECT_TRUE(report);
  return *std::move(report);
}

class StoreRepairTest : public StoreFixture {
 protected:
  /// Versions 1 and 2 are whole, 3 has a flipped bit in a block of rank 1.
  void damage_newest() {
    for (Version version = 1; version <= 3; ++version) put_version(version);
    ASSERT_TRUE(files_.flip(path("segment", 3, 1), 8 * (format::kSegmentHeaderBytes + 100)));
  }
  /// An empty store that no version has settled.
  void start_anew() {
    for (Rank rank = 0; rank < 2; ++rank) {
      ASSERT_TRUE(files_.erase(node(rank)));
      ASSERT_TRUE(files_.make_directory(node(rank)));
      put(rank, "run-000001", format::encode_run_record(record_of(1)));
    }
  }
  Version highest_number() {
    Version highest = 0;
    for (Rank rank = 0; rank < 2; ++rank) {
      const auto entries = files_.list(node(rank));
      EXPECT_TRUE(entries);
      for (const auto& entry : *entries)
        if (const auto parsed = format::parse_name(entry.name))
          highest = std::max(highest, parsed->key.version);
    }
    return highest;
  }
};

TEST_F(StoreRepairTest, DamagedVersionsGoToQuarantineAndWholeOnesStay) {
  damage_newest();
  const StoreView view = look();
  const auto repair = repair_store(view, check(view));
  ASSERT_TRUE(repair);
  EXPECT_TRUE(files_.peek(node(1) + "/quarantine/" + format::segment_name({{1, 3}, 1})));
  const StoreView after = look();
  EXPECT_TRUE(check(after).flaws.empty());
  ASSERT_NE(after.newest_whole(), nullptr);
  EXPECT_EQ(after.newest_whole()->key.version, 2u);
  EXPECT_EQ(highest_number(), 3u) << "the number must not be used again";
}

TEST_F(StoreRepairTest, TheMarkThatVersionsExistedComesFirst) {
  damage_newest();
  for (Rank rank = 0; rank < 2; ++rank) ASSERT_TRUE(files_.erase(node(rank) + "/settled"));
  const StoreView view = look();
  const auto repair = repair_store(view, check(view));
  ASSERT_TRUE(repair);
  ASSERT_GT(repair->steps.size(), 2u);
  EXPECT_EQ(repair->steps[0].file, "settled");
  EXPECT_TRUE(files_.peek(node(0) + "/settled"));
}

TEST_F(StoreRepairTest, ARepairThatFailsAnywhereCostsNothingThatWasWhole) {
  for (std::uint64_t stop = 1;; ++stop) {
    start_anew();
    damage_newest();
    std::uint64_t changes = 0;
    os::FaultyFiles files(files_, [&](const os::Operation& operation) {
      const bool counts = os::changes_disk(operation.kind) && ++changes >= stop;
      return os::Action{.error = counts ? EIO : 0};
    });
    const StoreView view = look(files);
    const bool done = repair_store(view, check(view)).has_value();
    const StoreView after = look();
    EXPECT_TRUE(after.has_existed()) << stop;
    ASSERT_NE(after.newest_whole(), nullptr) << stop;
    const CheckReport report = check(after);
    ASSERT_NE(report.newest_whole(), nullptr) << stop;
    EXPECT_EQ(report.newest_whole()->key.version, 2u) << stop;
    ASSERT_TRUE(repair_store(after, report)) << "the next try finishes it";
    EXPECT_TRUE(check(look()).flaws.empty()) << stop;
    if (done) {
      EXPECT_GT(stop, 8u);
      return;
    }
  }
}

TEST_F(StoreRepairTest, APruneThatFailsAnywhereLeavesNoManifestWithoutItsSegments) {
  for (std::uint64_t stop = 1;; ++stop) {
    start_anew();
    for (Version version = 1; version <= 3; ++version) put_version(version);
    std::uint64_t changes = 0;
    os::FaultyFiles files(files_, [&](const os::Operation& operation) {
      const bool counts = os::changes_disk(operation.kind) && ++changes >= stop;
      return os::Action{.error = counts ? EIO : 0};
    });
    const StoreView view = look(files);
    const auto plan = plan_prune(view, 1);
    ASSERT_TRUE(plan);
    Log log;
    const bool done = prune(view, *plan, log).has_value();
    EXPECT_TRUE(check(look()).flaws.empty()) << stop;
    EXPECT_EQ(look().newest_whole()->key.version, 3u) << stop;
    if (done) {
      EXPECT_EQ(look().versions().size(), 1u);
      return;
    }
  }
}

}  // namespace
}  // namespace belay::inspect
