// SPDX-License-Identifier: Apache-2.0
#include "dedup/local_dedup.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belay::dedup {
namespace {

constexpr std::uint32_t kBlock = 512;

Fingerprint name_of(std::uint64_t content) {
  std::mt19937_64 random(content + 1);
  return {random(), random()};
}

/// One region of whole blocks with these contents.
Manifest manifest_of(const std::vector<std::uint64_t>& contents) {
  Manifest manifest;
  manifest.block_bytes = kBlock;
  manifest.segments.resize(2);
  manifest.regions.push_back({"r", {}, {}, contents.size() * kBlock, 0});
  for (const std::uint64_t content : contents) {
    manifest.fingerprints.push_back(name_of(content));
    manifest.holders.push_back(0);
  }
  return manifest;
}

void append(Manifest& manifest, std::uint64_t content) {
  manifest.fingerprints.push_back(name_of(content));
  manifest.holders.push_back(0);
  manifest.regions.back().bytes += kBlock;
}

TEST(LocalDedup, WithoutAnythingIndexedNothingIsFound) {
  LocalDedup dedup;
  Manifest current = manifest_of({});
  dedup.start(current);
  EXPECT_FALSE(dedup.find(name_of(1), kBlock));
}

TEST(LocalDedup, FindsTheBlocksOfTheOlderVersion) {
  const Manifest older = manifest_of({10, 11, 12});
  LocalDedup dedup;
  dedup.index(older);
  Manifest current = manifest_of({});
  dedup.start(current);
  const auto found = dedup.find(name_of(11), kBlock);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->in_current);
  EXPECT_EQ(found->block, 1u);
  EXPECT_FALSE(dedup.find(name_of(13), kBlock));
}

TEST(LocalDedup, EqualMeansEqualLengthToo) {
  Manifest older = manifest_of({10, 11});
  older.regions[0].bytes -= 100;  // the last block is short
  LocalDedup dedup;
  dedup.index(older);
  EXPECT_TRUE(dedup.find(name_of(11), kBlock - 100));
  EXPECT_FALSE(dedup.find(name_of(11), kBlock));
  EXPECT_FALSE(dedup.find(name_of(10), kBlock - 100));
}

TEST(LocalDedup, ABlockOfTheCurrentVersionIsPreferred) {
  const Manifest older = manifest_of({10, 11});
  Manifest current = manifest_of({11});
  LocalDedup dedup;
  dedup.index(older);
  dedup.start(current);
  EXPECT_FALSE(dedup.find(name_of(11), kBlock)->in_current);
  dedup.add(0);
  const auto found = dedup.find(name_of(11), kBlock);
  EXPECT_TRUE(found->in_current);
  EXPECT_EQ(found->block, 0u);
  EXPECT_FALSE(dedup.find(name_of(10), kBlock)->in_current);
}

TEST(LocalDedup, IndexingForgetsEverythingElse) {
  const Manifest first = manifest_of({1, 2, 3});
  const Manifest second = manifest_of({4});
  LocalDedup dedup;
  dedup.index(first);
  dedup.index(second);
  EXPECT_FALSE(dedup.find(name_of(1), kBlock));
  EXPECT_TRUE(dedup.find(name_of(4), kBlock));
}

TEST(LocalDedup, EveryBlockOfAMuchLargerVersionIsFound) {
  const Manifest older = manifest_of({0, 1, 2});
  Manifest current = manifest_of({});
  LocalDedup dedup;
  dedup.index(older);
  dedup.start(current);
  constexpr std::uint64_t kCount = 20'000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    append(current, 1000 + i);
    dedup.add(i);
  }
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const auto found = dedup.find(name_of(1000 + i), kBlock);
    ASSERT_TRUE(found) << i;
    EXPECT_TRUE(found->in_current);
    EXPECT_EQ(found->block, i);
  }
  EXPECT_FALSE(dedup.find(name_of(999), kBlock));
}

TEST(LocalDedup, WhatItNeverSawIsNeverFound) {
  std::vector<std::uint64_t> contents(10'000);
  for (std::uint64_t i = 0; i < contents.size(); ++i) contents[i] = i;
  const Manifest older = manifest_of(contents);
  LocalDedup dedup;
  dedup.index(older);
  for (std::uint64_t i = 10'000; i < 30'000; ++i) ASSERT_FALSE(dedup.find(name_of(i), kBlock));
}

TEST(LocalDedup, LengthsAreRightAmongManySmallAndEmptyRegions) {
  Manifest older;
  older.block_bytes = kBlock;
  older.segments.resize(1);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t bytes = i % 3 == 0 ? 0 : i % kBlock + 1;
    older.regions.push_back({std::to_string(i), {}, {}, bytes, older.fingerprints.size()});
    if (bytes == 0) continue;
    older.fingerprints.push_back(name_of(i));
    older.holders.push_back(0);
  }
  LocalDedup dedup;
  dedup.index(older);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto bytes = static_cast<std::uint32_t>(i % kBlock + 1);
    EXPECT_EQ(dedup.find(name_of(i), bytes).has_value(), i % 3 != 0) << i;
    EXPECT_FALSE(dedup.find(name_of(i), bytes + 1)) << i;
  }
}

TEST(LocalDedup, LiveBytesCountEqualBlocksOnce) {
  Manifest older = manifest_of({7, 7, 7, 8});
  older.holders[3] = 1;
  LocalDedup dedup;
  dedup.index(older);
  EXPECT_EQ(dedup.live_bytes(), (std::vector<std::uint64_t>{kBlock, kBlock}));
}

TEST(LocalDedup, CostsAboutFiveBytesABlock) {
  std::vector<std::uint64_t> contents(100'000);
  for (std::uint64_t i = 0; i < contents.size(); ++i) contents[i] = i;
  const Manifest older = manifest_of(contents);
  LocalDedup dedup;
  dedup.index(older);
  EXPECT_LE(dedup.memory_bytes(), contents.size() * 6);
}

/// A version that overwrites the table of the older one, front to back.
struct InPlace {
  explicit InPlace(const std::vector<std::uint64_t>& contents) : older(manifest_of(contents)) {
    dedup.index(older);
    current = older;
    static_cast<BlockTable&>(older) = {};
    dedup.start(current, contents.size(), true);
  }
  void overwrite(std::uint64_t block, std::uint64_t content, std::uint8_t holder) {
    dedup.displace(block);
    current.fingerprints[block] = name_of(content);
    current.holders[block] = holder;
    dedup.add(block);
    dedup.passed(block);
  }
  Manifest older;
  Manifest current;
  LocalDedup dedup;
};

TEST(LocalDedup, InPlaceOverwrittenBlocksAreRemembered) {
  InPlace version({10, 11, 12, 13});
  version.overwrite(0, 20, 1);
  const auto old = version.dedup.find(name_of(10), kBlock);
  ASSERT_TRUE(old);
  EXPECT_FALSE(old->in_current);
  EXPECT_EQ(old->holder, 0);
  const auto now = version.dedup.find(name_of(20), kBlock);
  ASSERT_TRUE(now);
  EXPECT_TRUE(now->in_current);
  EXPECT_EQ(now->holder, 1);
}

TEST(LocalDedup, InPlaceBlocksThatWerePassedAreTheCurrentVersions) {
  InPlace version({10, 11});
  EXPECT_FALSE(version.dedup.find(name_of(10), kBlock)->in_current);
  version.current.holders[0] = 1;  // the same content, under the new manifest's number
  version.dedup.passed(0);
  const auto found = version.dedup.find(name_of(10), kBlock);
  EXPECT_TRUE(found->in_current);
  EXPECT_EQ(found->holder, 1);
  EXPECT_FALSE(version.dedup.find(name_of(11), kBlock)->in_current);
}

TEST(LocalDedup, InPlaceOnlyHalfOfTheBlocksIsRemembered) {
  InPlace version({10, 11, 12, 13});
  for (std::uint64_t block = 0; block < 3; ++block) version.overwrite(block, 20 + block, 1);
  EXPECT_TRUE(version.dedup.find(name_of(11), kBlock));
  EXPECT_FALSE(version.dedup.find(name_of(12), kBlock));
  EXPECT_TRUE(version.dedup.find(name_of(13), kBlock));
}

TEST(LocalDedup, AfterSeparatingTheOlderVersionsTableIsItsOwnAgain) {
  InPlace version({10, 11, 12, 13});
  version.overwrite(0, 20, 1);
  static_cast<BlockTable&>(version.older) = version.current;
  version.current.fingerprints.resize(1);
  version.current.holders.resize(1);
  version.dedup.separate();
  EXPECT_TRUE(version.dedup.find(name_of(20), kBlock)->in_current);
  EXPECT_FALSE(version.dedup.find(name_of(10), kBlock)->in_current);
  EXPECT_FALSE(version.dedup.find(name_of(12), kBlock)->in_current);
}

}  // namespace
}  // namespace belay::dedup
