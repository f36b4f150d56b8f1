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
  EXPECT_TRUE(all_.safe({.id = id_, .file_bytes = 4096, .copies = 0}, 0));
  EXPECT_FALSE(all_.safe({.id = id_, .file_bytes = 4096, .copies = 1}, 1));
  all_.remove(id_, FileKind::segment, node_);
  EXPECT_FALSE(all_.safe({.id = id_, .file_bytes = 4096, .copies = 0}, 0));
  EXPECT_TRUE(all_.found({.id = id_, .file_bytes = 4096}));
}

TEST_F(WhereaboutsTest, FilesOnNodesAndOnTheGlobalTierGoByThemselves) {
  all_.remove(id_, /*global=*/false);
  ASSERT_EQ(all_.holders(id_).size(), 1u);
  EXPECT_EQ(all_.holders(id_).front().place, global_);
  all_.remove(id_, /*global=*/true);
  EXPECT_TRUE(all_.holders(id_).empty());
}

TEST_F(WhereaboutsTest, ADamagedFileIsLostOnANodeAndReadWithCareOnTheGlobalTier) {
  all_.damaged(id_, FileKind::segment, node_);
  all_.damaged(id_, FileKind::copy, global_);
  ASSERT_EQ(all_.holders(id_).size(), 1u);
  EXPECT_TRUE(all_.holders(id_).front().damaged);
  all_.add({id_, FileKind::copy, 0, 0}, global_, 0);
  EXPECT_FALSE(all_.holders(id_).front().damaged) << "it was written anew";
}

}  // namespace
}  // namespace belay::catalog
