// SPDX-License-Identifier: Apache-2.0
#include "vote/recovery.hpp"

#include <gtest/gtest.h>

namespace belay::vote {
namespace {

/// Of a store whose last run was closed.
Survey survey_of(std::vector<SurveyedManifest> manifests, Run record = 1) {
  Survey survey;
  survey.closed_run = record;
  survey.highest_record = record;
  survey.highest_run = record;
  for (const SurveyedManifest& manifest : manifests)
    if (manifest.key.version > survey.highest_number.version) survey.highest_number = manifest.key;
  survey.manifests = std::move(manifests);
  return survey;
}
SurveyedManifest good(Version version, Run run = 1) { return {{run, version}, 0, {}, true}; }
SurveyedManifest bad(Version version, Run run = 1) { return {{run, version}, 0, {}, false}; }

Recovery recover_first(std::vector<Survey> surveys) {
  for (Rank rank = 0; rank < surveys.size(); ++rank)
    for (SurveyedManifest& manifest : surveys[rank].manifests) manifest.rank = rank;
  OwnSurvey own;
  own.survey = surveys.front();
  for (const SurveyedManifest& manifest : own.survey.manifests) {
    if (!manifest.readable) continue;
    Manifest readable;
    readable.origin.key = manifest.key;
    readable.segments = {{{manifest.key, 0}, 4096}};
    own.readable.push_back(readable);
  }
  return recover(own, surveys, 0);
}

TEST(Recovery, AnEmptyStoreIsAFirstStart) {
  const auto recovery = recover_first({survey_of({}, 0), survey_of({}, 0)});
  EXPECT_EQ(recovery.latest, std::nullopt);
  EXPECT_EQ(recovery.next_number, 1u);
  EXPECT_TRUE(recovery.known.empty());
}

TEST(Recovery, TheNewestIsWhatAllRanksHaveNotWhatAnyHas) {
  const auto recovery =
      recover_first({survey_of({good(3), good(2), good(1)}), survey_of({good(2), good(1)})});
  EXPECT_EQ(recovery.latest, 2u);
  EXPECT_EQ(recovery.next_number, 4u);
  ASSERT_EQ(recovery.known.size(), 3u);
  EXPECT_FALSE(recovery.known[0].exists);
  EXPECT_TRUE(recovery.known[1].exists);
}

TEST(Recovery, AnUnreadableManifestOnOneRankIsNoVersionForAll) {
  const auto recovery =
      recover_first({survey_of({good(2), good(1)}), survey_of({bad(2), good(1)})});
  EXPECT_EQ(recovery.latest, 1u);
}

TEST(Recovery, AHigherRunIsNewerThanAHigherNumber) {
  const std::vector<SurveyedManifest> manifests{good(3, 2), good(9, 1)};
  const auto recovery = recover_first({survey_of(manifests, 2), survey_of(manifests, 2)});
  EXPECT_EQ(recovery.latest, 3u);
  EXPECT_EQ(recovery.next_number, 10u);
}

TEST(Recovery, VotesOfSomeRanksInTheVeryFirstCheckpointAreAFirstStart) {
  const auto recovery = recover_first({survey_of({good(1)}), survey_of({})});
  EXPECT_EQ(recovery.latest, std::nullopt);
  EXPECT_EQ(recovery.next_number, 2u) << "its number is taken all the same";
}

TEST(Recovery, DamageOfEveryVoteIsNotAFirstStart) {
  EXPECT_EQ(recover_first({survey_of({bad(1)}), survey_of({bad(1)})}).latest, 1u);
  EXPECT_EQ(recover_first({survey_of({good(1)}), survey_of({bad(1)})}).latest, 1u);
}

TEST(Recovery, AParentProvesThatAVersionExisted) {
  const auto recovery = recover_first({survey_of({{{1, 2}, 0, {1, 1}, true}}), survey_of({})});
  EXPECT_EQ(recovery.latest, 2u);
}

TEST(Recovery, TheSettledMarkProvesThatAVersionExisted) {
  auto settled = survey_of({});
  settled.settled = true;
  settled.highest_number = {1, 7};
  const auto recovery = recover_first({settled, survey_of({})});
  EXPECT_EQ(recovery.latest, 7u);
  EXPECT_TRUE(recovery.settled);
}

TEST(Recovery, ANodeWithoutTheRecordOfARunThatVotedWasLost) {
  EXPECT_EQ(recover_first({survey_of({good(1)}, 1), survey_of({}, 0)}).latest, 1u);
  EXPECT_EQ(recover_first({survey_of({}, 0), survey_of({good(4, 2)}, 2)}).latest, 4u);
}

TEST(Recovery, AfterARunThatWasNotClosedNumbersLeaveAGapForThoseWithoutATrace) {
  auto killed = survey_of({good(3)});
  killed.closed_run = 0;
  EXPECT_GT(recover_first({killed}).next_number, 4u);
  auto twice = killed;
  twice.highest_run = twice.highest_record = 2;
  EXPECT_GT(recover_first({twice}).next_number, recover_first({killed}).next_number);
}

TEST(Recovery, WhereAManifestCannotBeReadNobodyKnowsItsSegments) {
  const auto recovery = recover_first({survey_of({good(3), bad(2)}), survey_of({good(1)})});
  ASSERT_EQ(recovery.known.size(), 3u);
  ASSERT_TRUE(recovery.known[0].segments);
  EXPECT_EQ(recovery.known[0].segments->size(), 1u);
  EXPECT_EQ(recovery.known[1].segments, std::nullopt);
  ASSERT_TRUE(recovery.known[2].segments) << "this rank has no manifest of version 1 at all";
  EXPECT_TRUE(recovery.known[2].segments->empty());
}

}  // namespace
}  // namespace belay::vote
