// SPDX-License-Identifier: Apache-2.0
#include "catalog/whereabouts.hpp"

#include <gtest/gtest.h>

namespace belay::catalog {
namespace {

class WhereaboutsTest : public testing::Test {
 protected:
  WhereaboutsTest() {
    all_.mark_global(global_);
    all_.add({id_, FileKind::segment, 4096, 0}, node_, 0);
    all_.add({id_, FileKind::copy, 0, 0}, global_, 0);
  }

  const SegmentId id_{{1, 2}, 0};
  Whereabouts all_;
  const Whereabouts::Place node_ = all_.place("/store/node-a");
  const Whereabouts::Place global_ = all_.place("/global/node-a");
};

TEST_F(WhereaboutsTest, NoLevelCountsOnTheGlobalTier) {
  EXPECT_FALSE(all_.places_if_whole({.id = id_, .file_bytes = 4096, .copies = 0}, false).empty());
  EXPECT_TRUE(all_.places_if_whole({.id = id_, .file_bytes = 4096, .copies = 1}, true).empty());
  all_.remove(id_, FileKind::segment, node_);
  EXPECT_TRUE(all_.places_if_whole({.id = id_, .file_bytes = 4096, .copies = 0}, false).empty());
  EXPECT_TRUE(all_.found({.id = id_, .file_bytes = 4096}));
}

TEST_F(WhereaboutsTest, FilesOnNodesAndOnTheGlobalTierGoByThemselves) {
  all_.remove(id_, /*global=*/false);
  ASSERT_EQ(all_.holders(id_).size(), 1u);
  EXPECT_EQ(all_.holders(id_).front().place, global_);
  all_.remove(id_, /*global=*/true);
  EXPECT_TRUE(all_.holders(id_).empty());
}

TEST_F(WhereaboutsTest, ADamagedFileMayBeReadButNothingIsSafeByIt) {
  const SegmentRef segment{.id = id_, .file_bytes = 4096, .copies = 0};
  all_.damaged(id_, FileKind::segment, node_);
  all_.damaged(id_, FileKind::copy, global_);
  ASSERT_EQ(all_.holders(id_).size(), 2u);
  EXPECT_TRUE(all_.holders(id_)[0].damaged);
  EXPECT_TRUE(all_.holders(id_)[1].damaged);
  EXPECT_TRUE(all_.found(segment));
  EXPECT_TRUE(all_.places_if_whole(segment, false).empty());
  all_.add({id_, FileKind::copy, 0, 0}, global_, 0);
  EXPECT_FALSE(all_.holders(id_)[1].damaged) << "it was written anew";
}

TEST_F(WhereaboutsTest, AStripeWithADamagedPartIsNotWholeButGivesMembersBack) {
  const VersionKey key{1, 3};
  Stripe stripe{key, 0, Level::erasure(1, 1), {{0, 4096, 0, 0}, {1, 4096, 0, 0}}};
  const Whereabouts::Place other = all_.place("/store/node-b");
  const auto add_all = [&] {
    all_.add(stripe);
    for (std::uint32_t seat = 0; seat < 2; ++seat) {
      const auto place = seat == 0 ? node_ : other;
      all_.add({{key, seat}, FileKind::segment, 4096, 0}, place, seat);
      all_.add({shard_id(key, 0, 0), FileKind::shard, 0, seat}, place, seat);
    }
  };
  const SegmentRef member{.id = {key, 0}, .file_bytes = 4096, .nodes = 2, .shards = 1};
  add_all();
  EXPECT_FALSE(all_.places_if_whole(member, true).empty());
  all_.damaged(shard_id(key, 0, 0), FileKind::shard, other);
  EXPECT_TRUE(all_.places_if_whole(member, true).empty());
  all_.remove({key, 0}, FileKind::segment, node_);
  EXPECT_TRUE(all_.found(member)) << "perhaps from the good part of the shard";
  all_.remove(shard_id(key, 0, 0), FileKind::shard, other);
  EXPECT_FALSE(all_.found(member));
}

}  // namespace
}  // namespace belay::catalog
