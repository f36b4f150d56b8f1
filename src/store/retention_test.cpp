// SPDX-License-Identifier: Apache-2.0
#include "store/retention.hpp"

#include <gtest/gtest.h>

namespace belay::store {
namespace {

using Keys = std::vector<VersionKey>;

TEST(Retention, KeepsTheNewestExistingVersions) {
  const std::vector<KnownVersion> known{{{1, 1}, true}, {{1, 2}, true}, {{1, 3}, true}};
  EXPECT_EQ(versions_to_retire(known, {.keep = 2, .run = 1}), (Keys{{1, 1}}));
  EXPECT_EQ(versions_to_retire(known, {.keep = 1, .run = 1}), (Keys{{1, 2}, {1, 1}}));
  EXPECT_TRUE(versions_to_retire(known, {.keep = 3, .run = 1}).empty());
}

TEST(Retention, VersionsThatDoNotExistNeverPushOutOnesThatDo) {
  const std::vector<KnownVersion> known{
      {{1, 1}, true}, {{1, 2}, false}, {{1, 3}, true}, {{1, 4}, false}, {{1, 5}, false}};
  EXPECT_TRUE(versions_to_retire(known, {.keep = 2, .run = 1}).empty());
  EXPECT_EQ(versions_to_retire(known, {.keep = 1, .run = 1}), (Keys{{1, 2}, {1, 1}}));
}

TEST(Retention, EarlierRunsStayUntilThisRunHasRestored) {
  const std::vector<KnownVersion> known{
      {{1, 8}, true}, {{1, 9}, true}, {{2, 10}, true}, {{2, 11}, true}, {{2, 12}, true}};
  EXPECT_EQ(versions_to_retire(known, {.keep = 2, .run = 2}), (Keys{{2, 10}}));
  EXPECT_EQ(versions_to_retire(known, {.keep = 2, .run = 2, .earlier_runs_count = true}),
            (Keys{{2, 10}, {1, 9}, {1, 8}}));
}

TEST(Retention, ALaterRunIsNewerWhateverTheNumber) {
  const std::vector<KnownVersion> known{{{1, 50}, true}, {{2, 7}, true}};
  EXPECT_EQ(versions_to_retire(known, {.keep = 1, .run = 2, .earlier_runs_count = true}),
            (Keys{{1, 50}}));
}

TEST(Retention, OnlyVersionsOfTheSameOrAStrongerLevelPushOthersOut) {
  std::vector<KnownVersion> known;
  for (Version version = 1; version <= 9; ++version)
    known.push_back({.key = {1, version}, .exists = true, .strength = version % 4 == 0 ? 1u : 0u});
  EXPECT_EQ(versions_to_retire(known, {.keep = 2, .run = 1}),
            (Keys{{1, 7}, {1, 6}, {1, 5}, {1, 3}, {1, 2}, {1, 1}}));
  known[7].exists = false;  // version 8: the other strong one stays alone, and 7 counts again
  EXPECT_EQ(versions_to_retire(known, {.keep = 1, .run = 1}),
            (Keys{{1, 7}, {1, 6}, {1, 5}, {1, 3}, {1, 2}, {1, 1}}));
}

TEST(Retention, ALevelThatIsNotMadeAnyMoreDoesNotStayForEver) {
  const std::vector<KnownVersion> known{{.key = {1, 1}, .exists = true, .strength = 2},
                                        {.key = {1, 2}, .exists = true, .strength = 1},
                                        {.key = {1, 3}, .exists = true, .strength = 1}};
  EXPECT_EQ(versions_to_retire(known, {.keep = 2, .run = 1, .strongest = 1}), (Keys{{1, 1}}));
  EXPECT_TRUE(versions_to_retire(known, {.keep = 2, .run = 1, .strongest = 2}).empty());
}

TEST(Retention, DumpsNeitherCountNorGo) {
  const std::vector<KnownVersion> known{{{1, 1}, true},
                                        {.key = {1, 2}, .exists = true, .dump = true},
                                        {{1, 3}, true},
                                        {.key = {1, 4}, .exists = true, .dump = true}};
  EXPECT_EQ(versions_to_retire(known, {.keep = 1, .run = 1}), (Keys{{1, 1}}));
}

TEST(Retention, SegmentsGoWhenNoRemainingVersionCountsOnThem) {
  const std::vector<SegmentId> here{{{1, 1}, 0}, {{1, 2}, 0}, {{2, 3}, 0}, {{2, 4}, 0}};
  const std::vector<KnownVersion> remaining{{{2, 4}, true, {{{{1, 1}, 0}, {{2, 4}, 0}}}}};
  EXPECT_EQ(segments_to_remove(here, remaining, {.run = 2, .earlier_runs_count = true}),
            (std::vector<SegmentId>{{{1, 2}, 0}, {{2, 3}, 0}}));
  EXPECT_EQ(segments_to_remove(here, remaining, {.run = 2}), (std::vector<SegmentId>{{{2, 3}, 0}}));
}

TEST(Retention, NothingOlderThanAnUnreadManifestGoes) {
  const std::vector<SegmentId> here{{{1, 1}, 0}, {{1, 2}, 0}, {{1, 4}, 0}};
  const std::vector<KnownVersion> remaining{{{1, 3}, false, std::nullopt}};
  EXPECT_EQ(segments_to_remove(here, remaining, {.run = 1}), (std::vector<SegmentId>{{{1, 4}, 0}}));
}

}  // namespace
}  // namespace belay::store
