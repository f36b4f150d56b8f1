// SPDX-License-Identifier: Apache-2.0
#include "vote/holdings.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace belay::vote {
namespace {

constexpr Rank kRank = 3;

Manifest manifest_of(VersionKey key, std::vector<VersionKey> segments) {
  Manifest manifest;
  manifest.origin.key = key;
  manifest.origin.rank = kRank;
  for (const VersionKey& segment : segments) manifest.segments.push_back({{segment, kRank}, 4096});
  return manifest;
}

/// What run 2 finds of run 1.
Claim claim_of(const std::vector<Manifest>& manifests) {
  Claim claim;
  claim.run = 2;
  claim.leads_node = true;
  claim.own.run_records = {1};
  claim.own.survey.highest_run = claim.own.survey.highest_record = 1;
  claim.own.survey.closed_run = 1;
  for (const Manifest& manifest : manifests) {
    claim.own.readable.push_back(manifest);
    claim.own.survey.manifests.push_back({manifest.origin.key, kRank, {}, true});
    for (const SegmentRef& segment : manifest.segments) claim.own.segments.push_back(segment.id);
    claim.own.survey.highest_number =
        std::max(claim.own.survey.highest_number, manifest.origin.key);
  }
  claim.surveys = {claim.own.survey};
  return claim;
}

Retired retire(Holdings& holdings, VersionKey base) {
  holdings.retire_versions(base);
  holdings.release(holdings.needs());
  return holdings.take_retired();
}

void make_version(Holdings& holdings, const Manifest& manifest) {
  holdings.exists(manifest, info_of(manifest));
}

std::vector<Version> numbers_of(const std::vector<VersionInfo>& infos) {
  std::vector<Version> numbers;
  for (const VersionInfo& info : infos) numbers.push_back(info.version);
  return numbers;
}

TEST(Holdings, NumbersGoOnFromTheHighestSeen) {
  Claim claim = claim_of({manifest_of({1, 7}, {{1, 7}})});
  claim.surveys[0].highest_number = {1, 9};
  Holdings holdings(claim, 2, kRank);
  EXPECT_EQ(holdings.take_number(), 10u);
  EXPECT_EQ(holdings.take_number(), 11u);
  EXPECT_EQ(holdings.next_number(), 12u);
}

TEST(Holdings, NothingIsRetiredBeforeThisRunHasMadeAVersion) {
  Holdings holdings(claim_of({manifest_of({1, 3}, {{1, 3}}), manifest_of({1, 2}, {{1, 2}}),
                              manifest_of({1, 1}, {{1, 1}})}),
                    1, kRank);
  holdings.restored(Manifest{});
  EXPECT_TRUE(retire(holdings, {}).empty());
  EXPECT_EQ(numbers_of(holdings.versions()), (std::vector<Version>{3, 2, 1}));
}

TEST(Holdings, EarlierRunsStayUntilTheRestore) {
  Holdings holdings(claim_of({manifest_of({1, 1}, {{1, 1}})}), 1, kRank);
  make_version(holdings, manifest_of({2, 2}, {{2, 2}}));
  make_version(holdings, manifest_of({2, 3}, {{2, 3}}));
  const Retired first = retire(holdings, {});
  EXPECT_EQ(first.manifests, (std::vector<SegmentId>{{{2, 2}, kRank}}));
  EXPECT_EQ(first.segments, (std::vector<SegmentId>{{{2, 2}, kRank}}));
  EXPECT_TRUE(first.others.empty()) << "the record of run 1 matters while its versions do";
  holdings.restored(Manifest{});
  const Retired second = retire(holdings, {});
  EXPECT_EQ(second.manifests, (std::vector<SegmentId>{{{1, 1}, kRank}}));
  EXPECT_EQ(second.segments, (std::vector<SegmentId>{{{1, 1}, kRank}}));
  EXPECT_EQ(second.others, std::vector<std::string>{"run-000001"});
  EXPECT_TRUE(retire(holdings, {}).empty()) << "it forgets what it gave away";
}

TEST(Holdings, ASegmentStaysWhileARetainedVersionCountsOnIt) {
  Holdings holdings(claim_of({}), 1, kRank);
  make_version(holdings, manifest_of({2, 1}, {{2, 1}}));
  make_version(holdings, manifest_of({2, 2}, {{2, 1}, {2, 2}}));
  EXPECT_TRUE(retire(holdings, {}).segments.empty());
  make_version(holdings, manifest_of({2, 3}, {{2, 2}, {2, 3}}));
  EXPECT_EQ(retire(holdings, {}).segments, (std::vector<SegmentId>{{{2, 1}, kRank}}));
}

TEST(Holdings, WhatCouldNotBeRemovedIsRetiredAgain) {
  Holdings holdings(claim_of({}), 1, kRank);
  Retired left;
  left.manifests = {{{2, 1}, kRank}};
  left.segments = {{{2, 1}, kRank}};
  left.others = {"x.tmp"};
  holdings.give_back(left);
  const Retired again = retire(holdings, {});
  EXPECT_EQ(again.manifests, left.manifests);
  EXPECT_EQ(again.segments, left.segments);
  EXPECT_EQ(again.others, left.others);
}

TEST(Holdings, TheFilesOfAFailedVersionMayGoAtOnce) {
  Holdings holdings(claim_of({}), 2, kRank);
  holdings.discard({2, 5});
  const Retired retired = retire(holdings, {});
  EXPECT_EQ(retired.manifests, (std::vector<SegmentId>{{{2, 5}, kRank}}));
  EXPECT_EQ(retired.segments, (std::vector<SegmentId>{{{2, 5}, kRank}}));
  EXPECT_EQ(retired.others, std::vector<std::string>{"manifest-000002-0000000005-000003.tmp"});
}

TEST(Holdings, BlocksGoAfterTheManifestsWhereTheseAreHiddenFirst) {
  Holdings holdings(claim_of({}), 1, kRank);
  holdings.hide_first();
  make_version(holdings, manifest_of({2, 1}, {{2, 1}}));
  make_version(holdings, manifest_of({2, 2}, {{2, 2}}));
  const auto round = [&] {
    Needs all = holdings.needs();
    all.add_retiring();
    holdings.release(all);
    holdings.retire_versions({});
    return holdings.take_retired();
  };
  const Retired first = round();
  EXPECT_EQ(first.manifests, (std::vector<SegmentId>{{{2, 1}, kRank}}));
  EXPECT_TRUE(first.segments.empty());
  holdings.give_back({});
  const Retired second = round();
  EXPECT_TRUE(second.manifests.empty());
  EXPECT_EQ(second.segments, (std::vector<SegmentId>{{{2, 1}, kRank}}));
}

TEST(Holdings, AVersionFoundDamagedIsNoLongerTheLatestButStillATrace) {
  Holdings holdings(claim_of({manifest_of({1, 2}, {{1, 2}}), manifest_of({1, 1}, {{1, 1}})}), 2,
                    kRank);
  EXPECT_EQ(holdings.latest(), 2u);
  holdings.does_not_exist({1, 2});
  EXPECT_EQ(holdings.latest(), 1u);
  EXPECT_EQ(numbers_of(holdings.versions()), std::vector<Version>{1});
  holdings.does_not_exist({1, 1});
  EXPECT_TRUE(holdings.latest()) << "damage does not look like a first start";
  EXPECT_TRUE(holdings.versions().empty());
  EXPECT_EQ(holdings.candidates().size(), 2u) << "they are worth another try";
}

TEST(Holdings, ADamagedVersionDoesNotCountTowardsKeep) {
  Holdings holdings(claim_of({manifest_of({1, 2}, {{1, 2}}), manifest_of({1, 1}, {{1, 1}})}), 2,
                    kRank);
  holdings.does_not_exist({1, 2});
  holdings.restored(Manifest{});
  make_version(holdings, manifest_of({2, 3}, {{2, 3}}));
  EXPECT_TRUE(retire(holdings, {}).manifests.empty()) << "3 and 1 are the two to keep";
  make_version(holdings, manifest_of({2, 4}, {{2, 4}}));
  EXPECT_EQ(retire(holdings, {}).manifests,
            (std::vector<SegmentId>{{{1, 2}, kRank}, {{1, 1}, kRank}}));
}

TEST(Holdings, TheVersionThatTheNextOneBuildsOnStays) {
  Holdings holdings(claim_of({manifest_of({1, 2}, {{1, 2}}), manifest_of({1, 1}, {{1, 1}})}), 1,
                    kRank);
  holdings.restored(Manifest{});
  make_version(holdings, manifest_of({2, 3}, {{2, 3}}));
  EXPECT_EQ(retire(holdings, {1, 1}).manifests, (std::vector<SegmentId>{{{1, 2}, kRank}}));
  EXPECT_EQ(retire(holdings, {2, 3}).manifests, (std::vector<SegmentId>{{{1, 1}, kRank}}));
}

TEST(Holdings, TheMarkIsLeftOnceAndNotBeforeAVersionExists) {
  Holdings holdings(claim_of({}), 2, kRank);
  EXPECT_FALSE(holdings.must_settle());
  make_version(holdings, manifest_of({2, 1}, {{2, 1}}));
  EXPECT_TRUE(holdings.must_settle());
  holdings.settled();
  EXPECT_FALSE(holdings.must_settle());
}

}  // namespace
}  // namespace belay::vote
