// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_view.hpp"

#include "inspect/store_fixture_test.hpp"
#include "os/faulty_files.hpp"

#include <cerrno>

namespace belay::inspect {
namespace {

class StoreViewTest : public StoreFixture {};

TEST_F(StoreViewTest, VersionsWithAllVotesAndSegmentsAreWhole) {
  put_version(1);
  put_version(2);
  const StoreView view = look();
  ASSERT_EQ(view.versions().size(), 2u);
  EXPECT_EQ(view.versions()[0].key, (VersionKey{1, 2})) << "newest first";
  EXPECT_EQ(view.newest_whole(), &view.versions()[0]);
  EXPECT_TRUE(view.all_flaws().empty());
}

TEST_F(StoreViewTest, AVersionWithoutAllVotesIsIncomplete) {
  put_version(1);
  put_segment(2, 0);
  put_manifest(2, 0);
  const StoreView view = look();
  EXPECT_EQ(view.find({1, 2})->state, VersionState::incomplete);
  EXPECT_TRUE(view.all_flaws().empty());
  EXPECT_EQ(view.newest_whole()->key.version, 1u);
}

TEST_F(StoreViewTest, AfterCloseAMissingVoteIsLost) {
  put_version(1);
  put_version(2);
  put_mark_of_close(2);
  ASSERT_TRUE(files_.erase(path("manifest", 2, 1)));
  const StoreView view = look();
  EXPECT_EQ(view.find({1, 2})->state, VersionState::damaged);
  ASSERT_FALSE(view.find({1, 2})->flaws.empty());
  EXPECT_EQ(view.find({1, 2})->flaws[0].rank, Rank{1});
}

TEST_F(StoreViewTest, AMissingSegmentDamagesEveryVersionThatCountsOnIt) {
  put_version(1);
  put_version(2);
  ASSERT_TRUE(files_.erase(path("segment", 1, 0)));
  const StoreView view = look();
  EXPECT_EQ(view.newest_whole(), nullptr);
  EXPECT_TRUE(view.has_existed());
  EXPECT_EQ(view.all_flaws().size(), 2u);
}

TEST_F(StoreViewTest, AVersionThatGoesUnderneathIsNoDamage) {
  // It goes when its name has been listed, or when its manifests have been read.
  for (const std::string& moment : {path("manifest", 2, 1), path("segment", 2, 1)}) {
    put_version(2);
    bool gone = false;
    os::FaultyFiles files(files_, [&](const os::Operation& operation) {
      if (!gone && operation.kind == os::Operation::Kind::open && operation.path == moment) {
        gone = true;
        for (const char* kind : {"manifest", "segment"})
          for (Rank rank = 0; rank < 2; ++rank) EXPECT_TRUE(files_.erase(path(kind, 2, rank)));
      }
      return os::Action{};
    });
    const StoreView view = look(files);
    EXPECT_TRUE(gone);
    EXPECT_EQ(view.versions().size(), 0u) << moment;
    EXPECT_TRUE(view.all_flaws().empty()) << moment;
  }
}

TEST_F(StoreViewTest, AFileThatCannotBeReadIsAnErrorOfTheDiskNotOfItsContent) {
  put_version(1);
  os::FaultyFiles files(files_, [&](const os::Operation& operation) {
    const bool hit =
        operation.kind == os::Operation::Kind::open && operation.path == path("manifest", 1, 0);
    return os::Action{.error = hit ? EIO : 0};
  });
  const StoreView view = look(files);
  ASSERT_EQ(view.all_flaws().size(), 1u);
  EXPECT_EQ(view.all_flaws()[0].code, Code::io);
}

TEST_F(StoreViewTest, LookingWritesNothing) {
  put_version(1);
  os::FaultyFiles files(files_, [&](const os::Operation& operation) {
    EXPECT_FALSE(os::changes_disk(operation.kind)) << operation.path;
    return os::Action{};
  });
  (void)look(files);
}

TEST_F(StoreViewTest, FirstVotesOfAKilledJobDoNotProveThatAVersionExisted) {
  for (Rank rank = 0; rank < 2; ++rank) ASSERT_TRUE(files_.erase(node(rank) + "/settled"));
  put_segment(1, 0);
  put_manifest(1, 0);
  EXPECT_FALSE(look().has_existed());
  put_segment(1, 1);
  put_manifest(1, 1);
  EXPECT_TRUE(look().has_existed());
}

}  // namespace
}  // namespace belay::inspect
