// SPDX-License-Identifier: Apache-2.0
// Manifests that speak of copies and of blocks that other ranks store: format version 2.
#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/manifest.hpp"
#include "format/vector_sink.hpp"

#include <functional>

namespace belay::format {
namespace {

using Bytes = std::vector<std::byte>;

constexpr SegmentRef elsewhere(Run run, Version version) { return {{{run, version}, kAnyRank}, 0}; }

/// Rank 1 of 3. One block for each holding segment: its own of two versions, and elsewhere.
Manifest make_manifest() {
  Manifest manifest;
  manifest.origin = {{0x0123456789abcdef, 0xfedcba9876543210}, 42, {1, 2}, 1, 3};
  manifest.application = "heat";
  manifest.block_bytes = 512;
  manifest.segments = {{{{1, 1}, 1}, 4096, 0},
                       elsewhere(1, 1),
                       {{{1, 2}, 1}, 8192, 2},
                       {{{1, 1}, 0}, 4096, 0},
                       {{{1, 1}, 2}, 12288, 1}};
  RegionRecord region;
  region.name = "r";
  region.type = {ElementKind::u8, 1, ""};
  region.bytes = 3 * 512;
  manifest.regions.push_back(region);
  manifest.fingerprints = {{1, 2}, {3, 4}, {5, 6}};
  manifest.holders = {0, 1, 2};
  return manifest;
}

Bytes encode(const Manifest& manifest) {
  auto encoded = encode_manifest(manifest);
  EXPECT_TRUE(encoded) << encoded.error().message();
  return *std::move(encoded);
}

void expect_round_trip(const Manifest& manifest, std::uint8_t format) {
  const Bytes file = encode(manifest);
  EXPECT_EQ(file[8], std::byte{format});
  const auto decoded = decode_manifest(file);
  ASSERT_TRUE(decoded) << decoded.error().message();
  EXPECT_EQ(decoded->segments, manifest.segments);
  EXPECT_EQ(decoded->holders, manifest.holders);
}

TEST(ManifestWithCopies, ComesBackAsItWas) { expect_round_trip(make_manifest(), 2); }

TEST(ManifestWithCopies, AnythingNewMakesItFormat2AndNothingNewFormat1) {
  Manifest manifest = make_manifest();
  manifest.holders = {0, 0, 1};
  manifest.segments = {{{{1, 1}, 1}, 4096, 0}, {{{1, 2}, 1}, 8192, 0}};
  expect_round_trip(manifest, 1);
  manifest.segments[1].copies = 1;
  expect_round_trip(manifest, 2);
  manifest.segments[1] = elsewhere(1, 2);
  expect_round_trip(manifest, 2);
}

TEST(ManifestWithCopies, NumberOfCopiesLiesAtByte28OfTheSegment) {
  const Bytes file = encode(make_manifest());
  EXPECT_EQ(file[256 + 4 + 2 * 32 + 28], std::byte{2});
  EXPECT_EQ(file[256 + 4 + 4 * 32 + 28], std::byte{1});
}

TEST(ManifestWithCopies, IsTheSameInMemoryAndInASink) {
  VectorSink sink;
  ASSERT_TRUE(encode_manifest(make_manifest(), sink));
  EXPECT_EQ(sink.bytes(), encode(make_manifest()));
}

TEST(ManifestWithCopies, CountsOnAnyNumberOfSegmentsOfOtherRanks) {
  Manifest manifest = make_manifest();
  manifest.origin.ranks = 5000;
  manifest.segments.resize(3);
  for (Rank rank = 2; rank < 5000; ++rank)
    manifest.segments.push_back({{{1, 1}, rank}, 4096, static_cast<std::uint16_t>(rank % 3)});
  expect_round_trip(manifest, 2);
  EXPECT_EQ(manifest.holding_segments(), 3u);
}

TEST(ManifestWithCopies, HasAtMost250SegmentsThatHoldBlocks) {
  Manifest manifest = make_manifest();
  manifest.segments.clear();
  for (Version version = 1; version <= 125; ++version) {
    manifest.segments.push_back({{{1, version}, 1}, 4096, 1});
    manifest.segments.push_back(elsewhere(1, version));
  }
  manifest.segments.push_back({{{1, 7}, 2}, 4096, 1});
  expect_round_trip(manifest, 2);
  EXPECT_EQ(manifest.holding_segments(), kMaxSegments);
  manifest.segments.insert(manifest.segments.begin(), elsewhere(2, 1));
  const auto encoded = encode_manifest(manifest);
  ASSERT_FALSE(encoded);
  EXPECT_EQ(encoded.error().code(), Code::invalid_argument);
}

TEST(ManifestWithCopies, EveryFlippedBitIsFound) {
  expect_every_flip_is_refused(encode(make_manifest()), decode_manifest);
}

TEST(ManifestWithCopies, EveryCutIsCorruption) {
  expect_every_cut_is_corruption(encode(make_manifest()), decode_manifest);
}

TEST(ManifestWithCopies, NewerVersionIsUnsupported) {
  expect_newer_version_is_unsupported(encode(make_manifest()), decode_manifest);
}

/// Fields that lie, under a checksum that fits: only the rules can refuse them.
class HostileManifestWithCopies : public testing::Test {
 protected:
  static constexpr std::size_t segment(std::size_t number) { return 256 + 4 + 32 * number; }

  template <class T>
  void set(std::size_t offset, T value) {
    overwrite(file_, offset, value);
    const auto sum = Checksum128::of(std::span(file_).first(file_.size() - 16));
    overwrite(file_, file_.size() - 16, sum.low);
    overwrite(file_, file_.size() - 8, sum.high);
  }
  template <class T>
  void expect_corruption(std::size_t offset, T value) {
    const Bytes good = file_;
    set(offset, value);
    const auto decoded = decode_manifest(file_);
    ASSERT_FALSE(decoded) << "offset " << offset << ", value " << value;
    EXPECT_EQ(decoded.error().code(), Code::corruption);
    file_ = good;
  }

  Bytes file_ = encode(make_manifest());
};

TEST_F(HostileManifestWithCopies, TheFixtureItselfIsAccepted) {
  set(0, file_[0]);
  EXPECT_TRUE(decode_manifest(file_));
}

TEST_F(HostileManifestWithCopies, NewThingsInFormat1AreCorruption) {
  expect_corruption(8, std::uint32_t{1});
  Manifest only_copies = make_manifest();
  only_copies.segments = {{{{1, 1}, 1}, 4096, 0}, {{{1, 2}, 1}, 8192, 1}};
  only_copies.holders = {0, 0, 1};
  file_ = encode(only_copies);
  expect_corruption(8, std::uint32_t{1});
}

TEST_F(HostileManifestWithCopies, Format2WithoutAnythingNewIsCorruption) {
  Manifest plain = make_manifest();
  plain.segments = {{{{1, 1}, 1}, 4096, 0}, {{{1, 2}, 1}, 8192, 0}};
  plain.holders = {0, 0, 1};
  file_ = encode(plain);
  expect_corruption(8, std::uint32_t{2});
}

TEST_F(HostileManifestWithCopies, ElsewhereIsJudged) {
  set(segment(1), std::uint64_t{0});  // run; the entries of others then lack it, too
  expect_corruption(segment(1) + 8, std::uint64_t{0});
  file_ = encode(make_manifest());
  expect_corruption(segment(1) + 16, std::uint64_t{4096});  // a size
  expect_corruption(segment(1) + 28, std::uint32_t{1});     // copies
}

TEST_F(HostileManifestWithCopies, SegmentsOfOtherRanksAreJudged) {
  expect_corruption(segment(3) + 24, Rank{3});          // of 3 ranks
  expect_corruption(segment(4) + 24, Rank{0});          // listed twice
  expect_corruption(segment(4) + 8, std::uint64_t{3});  // nothing of that version is held
  expect_corruption(segment(4) + 0, std::uint64_t{2});  // neither of that run
  expect_corruption(segment(4) + 24, kAnyRank);         // listed twice, and too late
  expect_corruption(segment(0) + 24, Rank{0});          // too early
  expect_corruption(64, Rank{0});                       // the manifest itself is of another rank
  expect_corruption(236, std::uint32_t{0xffffffff});    // the number of segments
  expect_corruption(236, std::uint32_t{0x08000000});    // times 32 is 2^32
  for (const std::uint32_t count : {0u, 3u, 4u, 6u, 250u}) expect_corruption(236, count);
}

TEST_F(HostileManifestWithCopies, OwnSegmentsAndElsewhereComeBeforeThoseOfOthers) {
  set(segment(4), std::uint64_t{9});
  expect_corruption(segment(4) + 24, Rank{1});
  set(segment(4) + 16, std::uint64_t{0});
  set(segment(4) + 28, std::uint32_t{0});
  expect_corruption(segment(4) + 24, kAnyRank);
}

TEST_F(HostileManifestWithCopies, HoldersNameOnlySegmentsThatHoldBlocks) {
  const std::size_t tables_end = segment(5) + 16 + 1;
  const std::size_t holders = (tables_end + 15) / 16 * 16 + 3 * 16;
  ASSERT_EQ(file_[holders + 2], std::byte{2});
  expect_corruption(holders + 2, std::uint8_t{3});
  expect_corruption(holders + 2, std::uint8_t{5});
  expect_corruption(holders, std::uint8_t{255});
}

TEST(ManifestWithCopies, WriterRefusesWhatReadersWouldRefuse) {
  const auto expect_invalid = [](const std::function<void(Manifest&)>& spoil) {
    Manifest manifest = make_manifest();
    spoil(manifest);
    const auto encoded = encode_manifest(manifest);
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code(), Code::invalid_argument);
  };
  expect_invalid([](Manifest& m) { m.segments[1].file_bytes = 1; });
  expect_invalid([](Manifest& m) { m.segments[1].copies = 1; });
  expect_invalid([](Manifest& m) { m.segments.push_back(elsewhere(0, 0)); });
  expect_invalid([](Manifest& m) {
    m.segments.resize(3);
    m.segments[1] = elsewhere(0, 0);
  });
  expect_invalid([](Manifest& m) { m.segments[4].id.key = {1, 7}; });
  expect_invalid([](Manifest& m) { m.segments[4].id.rank = 3; });
  expect_invalid([](Manifest& m) { m.segments[4].id.rank = 0; });
  expect_invalid([](Manifest& m) { std::swap(m.segments[2], m.segments[3]); });
  expect_invalid([](Manifest& m) { m.segments.push_back(elsewhere(1, 9)); });
  expect_invalid([](Manifest& m) { m.holders[0] = 3; });
}

TEST(Manifest, HoldingSegmentsAreThoseBeforeTheFirstOfAnotherRank) {
  Manifest manifest = make_manifest();
  EXPECT_EQ(manifest.holding_segments(), 3u);
  manifest.segments.resize(2);
  EXPECT_EQ(manifest.holding_segments(), 2u);
  manifest.segments.clear();
  EXPECT_EQ(manifest.holding_segments(), 0u);
}

}  // namespace
}  // namespace belay::format
