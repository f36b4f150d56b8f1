// SPDX-License-Identifier: Apache-2.0
#include "vote/global_holdings.hpp"

#include <gtest/gtest.h>

namespace belay::vote {
namespace {

constexpr Rank kOwner = 3;
const SegmentId kOldBundle = {{2, 1}, kOwner};
const SegmentId kNewBundle = {{2, 2}, kOwner};
const store::RetentionRule kKeepOne = {1, 2};

/// One bundle a version, with its own segment in it; only the newer version is left.
GlobalHoldings holdings_of_two() {
  GlobalHoldings holdings(GlobalClaim{}, {}, 2, kOwner);
  for (const SegmentId& id : {kOldBundle, kNewBundle}) {
    holdings.wrote({id, {id}});
    holdings.drained({id.key, true, std::vector<SegmentId>{id}});
  }
  EXPECT_EQ(holdings.retire_versions(kKeepOne), std::vector<VersionKey>{kOldBundle.key});
  return holdings;
}

TEST(GlobalHoldings, ABundleGoesOnceNobodyCountsOnItsSegments) {
  GlobalHoldings holdings = holdings_of_two();
  Needs of_others;
  of_others.segments.insert(kOldBundle);
  EXPECT_TRUE(holdings.take_retired(of_others, kKeepOne, false).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kKeepOne, false).bundles,
            std::vector<SegmentId>{kOldBundle});
}

TEST(GlobalHoldings, ABundleThatCouldNotBeRemovedStaysIfSomebodyCountsOnItByThen) {
  GlobalHoldings holdings = holdings_of_two();
  const Retired left = holdings.take_retired(holdings.needs(), kKeepOne, false);
  ASSERT_EQ(left.bundles, std::vector<SegmentId>{kOldBundle});
  holdings.give_back(left);

  Needs again = holdings.needs();
  again.segments.insert(kOldBundle);
  EXPECT_TRUE(holdings.take_retired(again, kKeepOne, false).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kKeepOne, false).bundles,
            std::vector<SegmentId>{kOldBundle});
}

TEST(GlobalHoldings, ABundleThatWasRemovedIsForgotten) {
  GlobalHoldings holdings = holdings_of_two();
  ASSERT_FALSE(holdings.take_retired(holdings.needs(), kKeepOne, false).bundles.empty());
  holdings.give_back({});
  EXPECT_TRUE(holdings.take_retired(holdings.needs(), kKeepOne, false).empty());
}

TEST(GlobalHoldings, NothingGoesThatABundleWhichCannotBeReadMayCountOn) {
  GlobalClaim claim;
  claim.own.kept_bundles = {{kOldBundle, {kOldBundle}, true}, {kNewBundle, {}, false}};
  GlobalHoldings holdings(claim, {}, 2, kOwner);
  EXPECT_TRUE(holdings.retire_versions(kKeepOne).empty());
  EXPECT_TRUE(holdings.take_retired(holdings.needs(), kKeepOne, false).bundles.empty());

  // As any other version it goes when there are newer ones.
  const SegmentId newest{{2, 3}, kOwner};
  holdings.wrote({newest, {newest}});
  holdings.drained({newest.key, true, std::vector<SegmentId>{newest}});
  EXPECT_EQ(holdings.retire_versions(kKeepOne), std::vector<VersionKey>{kNewBundle.key});
  EXPECT_EQ(holdings.take_retired(holdings.needs(), kKeepOne, false).bundles,
            std::vector<SegmentId>{kOldBundle});
}

}  // namespace
}  // namespace belay::vote
