// SPDX-License-Identifier: Apache-2.0
#include "format/names.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace belay::format {
namespace {

TEST(Names, AreFilledUpWithZeros) {
  EXPECT_EQ(segment_name({{1, 12}, 3}), "segment-000001-0000000012-000003");
  EXPECT_EQ(copy_name({{1, 12}, 3}), "copy-000001-0000000012-000003");
  EXPECT_EQ(manifest_name({1, 12}, 3), "manifest-000001-0000000012-000003");
  EXPECT_EQ(run_name(1), "run-000001");
  EXPECT_EQ(temporary_name(run_name(1)), "run-000001.tmp");
}

TEST(Names, ParseGivesBackWhatWasMade) {
  for (const VersionKey key :
       {VersionKey{0, 0}, {1, 12}, {1000000, 10000000000}, {UINT64_MAX, UINT64_MAX}})
    for (const Rank rank : {Rank{0}, Rank{999999}, Rank{1000000}, Rank{UINT32_MAX}}) {
      const auto segment = parse_name(segment_name({key, rank}));
      ASSERT_TRUE(segment);
      EXPECT_EQ(segment->kind, NameKind::segment);
      EXPECT_EQ(segment->key, key);
      EXPECT_EQ(segment->rank, rank);
      EXPECT_FALSE(segment->temporary);

      for (const bool temporary : {false, true}) {
        const std::string name = copy_name({key, rank});
        const auto copy = parse_name(temporary ? temporary_name(name) : name);
        ASSERT_TRUE(copy);
        EXPECT_EQ(copy->kind, NameKind::copy);
        EXPECT_EQ(copy->key, key);
        EXPECT_EQ(copy->rank, rank);
        EXPECT_EQ(copy->temporary, temporary);
      }

      const auto manifest = parse_name(temporary_name(manifest_name(key, rank)));
      ASSERT_TRUE(manifest);
      EXPECT_EQ(manifest->kind, NameKind::manifest);
      EXPECT_EQ(manifest->key, key);
      EXPECT_EQ(manifest->rank, rank);
      EXPECT_TRUE(manifest->temporary);

      const auto run = parse_name(run_name(key.run));
      ASSERT_TRUE(run);
      EXPECT_EQ(run->kind, NameKind::run);
      EXPECT_EQ(run->key.run, key.run);
    }
}

TEST(Names, AnyOtherSpellingIsNoneOfOurs) {
  for (const char* name : {"",
                           "lock",
                           "settled",
                           "settled.tmp",
                           "run-",
                           "run-1",
                           "run-0000001",
                           "run-00000a",
                           "run-000001 ",
                           " run-000001",
                           "Run-000001",
                           "run-000001.tmp.tmp",
                           "run-000001.TMP",
                           "run--00001",
                           "run-+00001",
                           "run-0x0001",
                           "run-18446744073709551616",
                           "run-000001-0000000001-000001",
                           "segment-000001",
                           "segment-000001-0000000012",
                           "segment-000001-0000000012-",
                           "segment-000001-0000000012-3",
                           "segment-000001-0000000012-0000003",
                           "segment-000001-00000000012-000003",
                           "segment-000001-0000000012-4294967296",
                           "segment-000001_0000000012_000003",
                           "segment-000001-0000000012-000003/",
                           "../segment-000001-0000000012-000003",
                           "segment-000001-0000000012-000003.",
                           "manifest-000001-0000000012-000003~",
                           "copy-000001-0000000012",
                           "copy-000001-0000000012-3",
                           "copy-000001-0000000012-4294967296",
                           "copies-000001-0000000012-000003",
                           "segments-000001-0000000012-000003"})
    EXPECT_FALSE(parse_name(name)) << name;
  EXPECT_FALSE(parse_name(std::string_view("run-000001\0", 11)));
}

}  // namespace
}  // namespace belay::format
