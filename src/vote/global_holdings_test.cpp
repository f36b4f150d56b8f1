// SPDX-License-Identifier: Apache-2.0
#include "vote/global_holdings.hpp"

#include <gtest/gtest.h>

namespace belay::vote {
namespace {

constexpr Rank kOwner = 3;
const SegmentId kOldBundle = {{2, 1}, kOwner};
const SegmentId kNewBundle = {{2, 2}, kOwner};
const store::RetentionRule kKeepOne = {1, 2};

/// What goes by what all ranks have said.
Retired take(GlobalHoldings& holdings, Needs all) {
  all.add_retiring();
  holdings.release(all, kKeepOne, false);
  return holdings.take_retired();
}

/// One bundle a version, with its own segment in it; the older version is retired, but can be seen.
GlobalHoldings holdings_of_two() {
  GlobalHoldings holdings(GlobalClaim{}, {}, 2, kOwner);
  for (const SegmentId& id : {kOldBundle, kNewBundle}) {
    holdings.wrote({id, {id}});
    holdings.drained({id.key, true, std::vector<SegmentId>{id}});
  }
  EXPECT_EQ(holdings.retire_versions(kKeepOne), std::vector<VersionKey>{kOldBundle.key});
  return holdings;
}

/// The same once the older one is hidden.
GlobalHoldings holdings_of_one() {
  GlobalHoldings holdings = holdings_of_two();
  EXPECT_EQ(holdings.take_retired().manifests, std::vector<SegmentId>{kOldBundle});
  holdings.give_back({});
  return holdings;
}

TEST(GlobalHoldings, ABundleStaysUntilManifestsThatCountOnItAreHidden) {
  GlobalHoldings holdings = holdings_of_two();
  const Retired hidden = take(holdings, holdings.needs());
  EXPECT_EQ(hidden.manifests, std::vector<SegmentId>{kOldBundle});
  EXPECT_TRUE(hidden.bundles.empty());
  // The round goes on, and then it is over, without success.
  EXPECT_FALSE(holdings.needs().retiring.empty());
  EXPECT_TRUE(holdings.needs().retiring.front().visible);
  holdings.give_back(hidden);
  const Retired again = take(holdings, holdings.needs());
  EXPECT_EQ(again.manifests, hidden.manifests);
  EXPECT_TRUE(again.bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(take(holdings, holdings.needs()).bundles, std::vector<SegmentId>{kOldBundle});
}

TEST(GlobalHoldings, ABundleStaysWhileAnotherRankHasManifestsOfTheVersionToHide) {
  GlobalHoldings holdings = holdings_of_one();
  Needs all = holdings.needs();
  all.retiring.push_back({kOldBundle.key, true, std::vector<SegmentId>{}});
  EXPECT_TRUE(take(holdings, all).bundles.empty()) << "this rank's manifest counts on it";
  holdings.give_back({});
  EXPECT_FALSE(holdings.needs().retiring.empty());
  EXPECT_FALSE(take(holdings, holdings.needs()).bundles.empty());
  EXPECT_TRUE(holdings.needs().retiring.empty());
}

TEST(GlobalHoldings, NothingOlderGoesWhileNobodyKnowsWhatCanBeSeen) {
  GlobalHoldings holdings = holdings_of_one();
  Needs all = holdings.needs();
  all.retiring.push_back({kNewBundle.key, true, {}});
  EXPECT_TRUE(take(holdings, all).bundles.empty());
}

TEST(GlobalHoldings, ABundleGoesOnceNobodyCountsOnItsSegments) {
  GlobalHoldings holdings = holdings_of_one();
  Needs of_others;
  of_others.segments.insert(kOldBundle);
  EXPECT_TRUE(take(holdings, of_others).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(take(holdings, holdings.needs()).bundles, std::vector<SegmentId>{kOldBundle});
}

TEST(GlobalHoldings, ABundleThatCouldNotBeRemovedStaysIfSomebodyCountsOnItByThen) {
  GlobalHoldings holdings = holdings_of_one();
  const Retired left = take(holdings, holdings.needs());
  ASSERT_EQ(left.bundles, std::vector<SegmentId>{kOldBundle});
  holdings.give_back(left);

  Needs again = holdings.needs();
  again.segments.insert(kOldBundle);
  EXPECT_TRUE(take(holdings, again).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(take(holdings, holdings.needs()).bundles, std::vector<SegmentId>{kOldBundle});
}

TEST(GlobalHoldings, ABundleThatWasRemovedIsForgotten) {
  GlobalHoldings holdings = holdings_of_one();
  ASSERT_FALSE(take(holdings, holdings.needs()).bundles.empty());
  holdings.give_back({});
  EXPECT_TRUE(take(holdings, holdings.needs()).empty());
}

TEST(GlobalHoldings, NothingGoesThatABundleWhichCannotBeReadMayCountOn) {
  GlobalClaim claim;
  claim.own.kept_bundles = {{kOldBundle, {kOldBundle}, true}, {kNewBundle, {}, false}};
  GlobalHoldings holdings(claim, {}, 2, kOwner);
  EXPECT_TRUE(holdings.retire_versions(kKeepOne).empty());
  EXPECT_TRUE(take(holdings, holdings.needs()).bundles.empty());
  holdings.give_back({});

  // As any other version it goes when there are newer ones.
  const SegmentId newest{{2, 3}, kOwner};
  holdings.wrote({newest, {newest}});
  holdings.drained({newest.key, true, std::vector<SegmentId>{newest}});
  EXPECT_EQ(holdings.retire_versions(kKeepOne), std::vector<VersionKey>{kNewBundle.key});
  EXPECT_TRUE(take(holdings, holdings.needs()).bundles.empty());
  holdings.give_back({});
  EXPECT_EQ(take(holdings, holdings.needs()).bundles, std::vector<SegmentId>{kOldBundle});
}

}  // namespace
}  // namespace belay::vote
