// SPDX-License-Identifier: Apache-2.0
#include "vote/global_holdings.hpp"

#include <gtest/gtest.h>

namespace belay::vote {
namespace {

constexpr Rank kRank = 3;
const SegmentId kOld = {{2, 1}, kRank};
const SegmentId kNew = {{2, 2}, kRank};
const store::RetentionRule kRule = {1, 2};

/// One bundle a version, with its own segment in it; only the newer version is left.
GlobalHoldings holdings_of_two() {
  GlobalHoldings holdings(GlobalClaim{}, {}, 2, kRank);
  for (const SegmentId& id : {kOld, kNew}) {
    holdings.wrote({id, {id}});
    holdings.drained({id.key, true, std::vector<SegmentId>{id}});
  }
  EXPECT_EQ(holdings.retire_versions(kRule), std::vector<VersionKey>{kOld.key});
  return holdings;
}

TEST(GlobalHoldings, ABundleGoesOnceNobodyCountsOnItsSegments) {
  GlobalHoldings holdings = holdings_of_two();
  Needs of_others;
  of_others.segments.insert(kOld);
  EXPECT_TRUE(holdings.take_retired(of_others, kRule, false).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kRule, false).bundles,
            std::vector<SegmentId>{kOld});
}

TEST(GlobalHoldings, ABundleThatCouldNotBeRemovedStaysIfSomebodyCountsOnItByThen) {
  GlobalHoldings holdings = holdings_of_two();
  const Retired left = holdings.take_retired(holdings.needs(), kRule, false);
  ASSERT_EQ(left.bundles, std::vector<SegmentId>{kOld});
  holdings.give_back(left);

  Needs again = holdings.needs();
  again.segments.insert(kOld);
  EXPECT_TRUE(holdings.take_retired(again, kRule, false).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kRule, false).bundles,
            std::vector<SegmentId>{kOld});
}

TEST(GlobalHoldings, ABundleThatWasRemovedIsForgotten) {
  GlobalHoldings holdings = holdings_of_two();
  ASSERT_FALSE(holdings.take_retired(holdings.needs(), kRule, false).bundles.empty());
  holdings.give_back({});
  EXPECT_TRUE(holdings.take_retired(holdings.needs(), kRule, false).empty());
}

TEST(GlobalHoldings, NothingGoesThatABundleWhichCannotBeReadMayCountOn) {
  GlobalClaim claim;
  claim.own.kept_bundles = {{kOld, {kOld}, true}, {kNew, {}, false}};
  GlobalHoldings holdings(claim, {}, 2, kRank);
  EXPECT_TRUE(holdings.retire_versions(kRule).empty());
  EXPECT_TRUE(holdings.take_retired(holdings.needs(), kRule, false).bundles.empty());

  // As any other version it goes when there are newer ones.
  const SegmentId newest{{2, 3}, kRank};
  holdings.wrote({newest, {newest}});
  holdings.drained({newest.key, true, std::vector<SegmentId>{newest}});
  EXPECT_EQ(holdings.retire_versions(kRule), std::vector<VersionKey>{kNew.key});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kRule, false).bundles,
            std::vector<SegmentId>{kOld});
}

}  // namespace
}  // namespace belay::vote
