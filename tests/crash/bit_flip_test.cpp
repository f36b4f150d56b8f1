// SPDX-License-Identifier: Apache-2.0
// Every bit of the manifest, and of the segment's header, index, padding and footer, is flipped in
// turn, and a sample of the data's bits: never is a version restored from it.
#include "crash/scenario.hpp"
#include "format/names.hpp"
#include "format/segment.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belay::crash {
namespace {

constexpr Rank kRank = 0;

class BitFlip : public testing::Test {
 protected:
  BitFlip() {
    auto session = open_rank(files_, ranks::make_solo_group(), small_options("/store"));
    EXPECT_TRUE(session);
    state_ = state_at(3, kRank);
    EXPECT_TRUE(protect(*session, state_));
    EXPECT_TRUE(session->checkpoint());
    EXPECT_TRUE(session->close());
    for (const std::string& path : files_.paths()) {
      if (path.find("manifest-") != std::string::npos) manifest_ = path;
      if (path.find("segment-") != std::string::npos) segment_ = path;
    }
  }

  /// What a restart makes of the store as it is. It leaves the store as it found it, but for a run
  /// record.
  Result<Version> restart() {
    auto session = open_rank(files_, ranks::make_solo_group(), small_options("/store"));
    if (!session) return Unexpected(session.error());
    EXPECT_TRUE(session->latest()) << "damage looks like a first start";
    State state;
    EXPECT_TRUE(protect(*session, state));
    auto restored = session->restore();
    if (restored) {
      EXPECT_EQ(state, state_) << "damage was restored as if it were good";
    }
    return restored;
  }

  void expect_detected(const std::string& path, std::uint64_t bit) {
    ASSERT_TRUE(files_.flip(path, bit));
    const auto restored = restart();
    EXPECT_FALSE(restored) << path << " bit " << bit << " was not noticed";
    if (!restored) {
      EXPECT_EQ(restored.error().code(), Code::corruption) << restored.error().message();
    }
    ASSERT_TRUE(files_.flip(path, bit));
    forget_runs();
  }

  /// Each restart leaves a run record; thousands of them would slow the next ones down.
  void forget_runs() {
    for (const std::string& path : files_.paths()) {
      if (path.find("/run-") != std::string::npos && !path.ends_with("run-000001")) {
        ASSERT_TRUE(files_.erase(path));
      }
    }
  }

  std::uint64_t bytes_of(const std::string& path) { return files_.peek(path)->size(); }

  os::MemoryFiles files_;
  State state_;
  std::string manifest_;
  std::string segment_;
};

TEST_F(BitFlip, AnUndamagedStoreIsRestored) { EXPECT_TRUE(restart()); }

TEST_F(BitFlip, EveryBitOfTheManifestCounts) {
  for (std::uint64_t bit = 0; bit < bytes_of(manifest_) * 8 && !HasFailure(); ++bit)
    expect_detected(manifest_, bit);
}

TEST_F(BitFlip, EveryBitOfTheSegmentsHeaderIndexAndFooterCounts) {
  const auto bytes = *files_.peek(segment_);
  const auto footer = format::decode_segment_footer(
      std::span(bytes).last(format::kSegmentFooterBytes), bytes.size());
  ASSERT_TRUE(footer);
  for (std::uint64_t bit = 0; bit < format::kSegmentHeaderBytes * 8 && !HasFailure(); ++bit)
    expect_detected(segment_, bit);
  for (std::uint64_t bit = footer->index_offset * 8; bit < bytes.size() * 8 && !HasFailure(); ++bit)
    expect_detected(segment_, bit);
}

TEST_F(BitFlip, ASampleOfTheDatasBitsCounts) {
  const auto bytes = *files_.peek(segment_);
  const auto footer = format::decode_segment_footer(
      std::span(bytes).last(format::kSegmentFooterBytes), bytes.size());
  ASSERT_TRUE(footer);
  std::mt19937_64 random(20261115);
  std::uniform_int_distribution<std::uint64_t> data(format::kSegmentHeaderBytes * 8,
                                                    footer->index_offset * 8 - 1);
  for (int i = 0; i < 3000 && !HasFailure(); ++i) expect_detected(segment_, data(random));
}

TEST_F(BitFlip, EveryTruncationIsNoticed) {
  for (const std::string& path : {manifest_, segment_}) {
    const auto whole = *files_.peek(path);
    for (std::uint64_t bytes = 0; bytes < whole.size() && !HasFailure(); bytes += 97) {
      os::MemoryFiles& files = files_;
      ASSERT_TRUE(files.cut(path, bytes));
      EXPECT_FALSE(restart()) << path << " cut to " << bytes;
      ASSERT_TRUE(files.erase(path));
      auto file = files.create(path, false);
      ASSERT_TRUE(file);
      ASSERT_TRUE((*file)->write(0, whole));
      forget_runs();
    }
  }
}

}  // namespace
}  // namespace belay::crash
