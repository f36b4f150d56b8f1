// SPDX-License-Identifier: Apache-2.0
// What is found by going through tables in parts is what a plain search finds.
#include "session/liveness.hpp"

#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/segment_maker_test.hpp"
#include "os/memory_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

namespace belay::session {
namespace {

constexpr StoreId kLiveStore{11, 22};
constexpr std::uint32_t kLiveBlock = 512;
using Numbers = std::vector<std::uint64_t>;

class LivenessTest : public testing::Test {
 protected:
  LivenessTest() {
    EXPECT_TRUE(files_.make_directory("/node"));
    tier_ = store::make_local_tier(files_, "/node");
  }

  static Fingerprint name(std::uint64_t number) { return {number * 0x9E3779B97F4A7C15u, number}; }
  static SegmentId id(std::size_t segment) { return {{1, segment + 1}, 0}; }

  void put(const std::string& file, std::span<const std::byte> bytes) {
    (void)tier_->remove(file);
    const auto made = files_.create("/node/" + file, /*direct=*/false);
    ASSERT_TRUE(made && (*made)->write(0, bytes) && (*made)->close());
  }

  LiveSegment segment(std::size_t number, const Numbers& contents, bool whole = false) {
    std::vector<format::MadeBlock> blocks;
    for (const std::uint64_t content : contents)
      blocks.push_back({name(content), std::vector<std::byte>(kLiveBlock)});
    const format::SegmentHeader header{
        {kLiveStore, 5, id(number).key, 0, 1}, HashKind::xxh3, kLiveBlock};
    put(format::segment_name(id(number)), format::make_segment(header, blocks));
    auto table = store::SegmentTable::open(*tier_, id(number), kLiveStore);
    EXPECT_TRUE(table);
    return {id(number), std::make_shared<const store::SegmentTable>(*std::move(table)),
            std::vector<bool>(contents.size(), whole)};
  }

  struct Live {
    std::uint64_t content = 0;
    std::uint8_t segment = 0;
  };
  /// Regions of `region_blocks` each.
  store::ManifestTable manifest(const std::vector<Live>& blocks, std::size_t segments,
                                std::uint64_t region_blocks) {
    Manifest made;
    made.origin = {kLiveStore, 5, {1, 100}, 0, 1};
    made.block_bytes = kLiveBlock;
    made.application = "live";
    for (std::size_t i = 0; i < segments; ++i) made.segments.push_back({id(i), 4096});
    for (const Live& block : blocks) {
      if (made.fingerprints.size() % region_blocks == 0)
        made.regions.push_back({"r" + std::to_string(made.regions.size()),
                                {ElementKind::f64, 8, {}},
                                {},
                                0,
                                made.fingerprints.size()});
      made.regions.back().bytes += kLiveBlock;
      made.regions.back().shape = Shape(made.regions.back().bytes / 8);
      made.fingerprints.push_back(name(block.content));
      made.holders.push_back(block.segment);
    }
    const auto bytes = format::encode_manifest(made);
    EXPECT_TRUE(bytes) << bytes.error().message();
    const std::string file = format::manifest_name(made.origin.key, 0);
    put(file, *bytes);
    store::PageReader reader;
    auto table = store::ManifestTable::open(*tier_, file, reader);
    EXPECT_TRUE(table);
    return *std::move(table);
  }

  /// Every content that is needed is marked somewhere, and nothing else is.
  void expect_found(const std::vector<Numbers>& contents, const std::vector<Live>& blocks,
                    std::uint64_t memory, const std::string& what,
                    std::uint64_t region_blocks = 1000) {
    std::vector<LiveSegment> segments;
    for (std::size_t i = 0; i < contents.size(); ++i) segments.push_back(segment(i, contents[i]));
    const auto table = manifest(blocks, contents.size(), region_blocks);
    std::optional<std::size_t> failed;
    const auto marked = mark_live(table, segments, memory, failed);
    ASSERT_TRUE(marked) << what << ": " << marked.error().message();
    std::set<std::pair<std::size_t, std::uint64_t>> wanted, found;
    for (const Live& block : blocks) wanted.insert({block.segment, block.content});
    for (std::size_t i = 0; i < contents.size(); ++i)
      for (std::size_t j = 0; j < contents[i].size(); ++j)
        if (segments[i].needed[j]) found.insert({i, contents[i][j]});
    EXPECT_EQ(found, wanted) << what;
    live_ = std::move(segments);
  }

  os::MemoryFiles files_;
  std::unique_ptr<store::Tier> tier_;
  std::vector<LiveSegment> live_;  ///< of the last expect_found()
};

Numbers rising(std::uint64_t first, std::uint64_t count) {
  Numbers numbers;
  for (std::uint64_t i = 0; i < count; ++i) numbers.push_back(first + i);
  return numbers;
}

TEST_F(LivenessTest, BlocksAreFoundBehindGapsOfAnyLength) {
  // Around the lengths that are known ahead, with little memory and with enough.
  for (const std::uint64_t memory : {1u, 1u << 20})
    for (const std::uint64_t gap : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 129u, 1023u, 1024u, 1025u,
                                    1500u, 2047u, 2048u, 2049u, 5000u}) {
      std::vector<Live> blocks;
      for (std::uint64_t i = 0; i < 300; ++i) blocks.push_back({i, 0});
      for (std::uint64_t i = 300 + gap; i < 6000; ++i) blocks.push_back({i, 0});
      expect_found({rising(0, 6000)}, blocks, memory, fmt::format("{} of {}", gap, memory), 300);
      // All that comes behind the gap is of the regions that it is of.
      ASSERT_EQ(live_[0].runs.size(), (blocks.size() + 299) / 300) << gap << " of " << memory;
      EXPECT_EQ(live_[0].runs[1].first, 300 + gap);
      EXPECT_EQ(live_[0].runs[1].region, 1u);
    }
}

TEST_F(LivenessTest, WhatIsThereTwiceOrHasChangedItsPlaceIsFound) {
  std::mt19937 random(3);
  for (const std::uint64_t memory : {1u, 4000u, 1u << 20})
    for (int turn = 0; turn < 6; ++turn) {
      std::vector<Numbers> contents(3);
      for (std::size_t i = 0; i < contents.size(); ++i)
        for (int j = 0; j < 2500; ++j)
          contents[i].push_back(turn < 2 ? 10000 * i + static_cast<std::uint64_t>(j)
                                         : random() % 4000);
      std::vector<Live> blocks;
      for (int i = 0; i < 3000; ++i) {
        const auto from = static_cast<std::uint8_t>(random() % 3);
        blocks.push_back({contents[from][random() % 2500], from});
      }
      if (turn % 2 == 1)  // in order, but with what all have in between
        for (std::size_t i = 0; i < blocks.size(); ++i)
          blocks[i] = {i % 7 == 0 ? contents[1][0] : contents[1][i % 2500], 1};
      expect_found(contents, blocks, memory, fmt::format("{} of {}", turn, memory));
    }
}

TEST_F(LivenessTest, ABlockThatIsNowhereIsDamageOfItsSegment) {
  for (const std::uint64_t memory : {1u, 1u << 20}) {
    std::vector<LiveSegment> segments = {segment(0, rising(0, 500)), segment(1, rising(600, 500))};
    std::vector<Live> blocks;
    for (std::uint64_t i = 0; i < 500; ++i) blocks.push_back({i, 0});
    for (std::uint64_t i = 600; i < 1100; ++i) blocks.push_back({i == 900 ? 7777 : i, 1});
    const auto table = manifest(blocks, 2, 100);
    std::optional<std::size_t> failed;
    const auto marked = mark_live(table, segments, memory, failed);
    ASSERT_FALSE(marked);
    EXPECT_EQ(marked.error().code(), Code::corruption);
    EXPECT_EQ(failed, 1u);
  }
}

TEST_F(LivenessTest, SegmentsThatOthersCountOnAreNeededAsAWhole) {
  std::vector<LiveSegment> segments = {segment(0, rising(0, 10), /*whole=*/true)};
  const auto table = manifest({{3, 0}, {4, 0}}, 1, 1);
  std::optional<std::size_t> failed;
  ASSERT_TRUE(mark_live(table, segments, 1 << 20, failed));
  EXPECT_EQ(segments[0].needed, std::vector<bool>(10, true));
  ASSERT_EQ(segments[0].runs.size(), 2u);
  EXPECT_EQ(segments[0].runs[1].first, 4u);
}

}  // namespace
}  // namespace belay::session
