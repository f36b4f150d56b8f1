// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"

#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"

#include <functional>

namespace belay::format {
namespace {

/// `regions` regions of 0, 1, 2, ... bytes beyond `region_bytes`, their blocks spread over
/// `segments`.
Manifest make_manifest(std::size_t regions, std::uint64_t region_bytes, std::size_t segments) {
  Manifest manifest;
  manifest.origin = {{0x0123456789abcdef, 0xfedcba9876543210}, 42, {3, 12}, 5, 8};
  manifest.parent = {2, 11};
  manifest.application = "heat";
  manifest.hash = HashKind::md5;
  manifest.block_bytes = 512;
  manifest.time_ns = -5;
  manifest.ledger = {12, 100, 10, 20, 30, 5, 35, 7, 36, 4096, 1, 2, 3, 4, 10, 99};
  for (std::size_t s = 0; s < segments; ++s)
    manifest.segments.push_back({{{1 + s % 3, 1 + s}, Rank{5}}, 4096 * (s + 1)});
  for (std::size_t r = 0; r < regions; ++r) {
    RegionRecord region;
    region.name = "region/" + std::to_string(r);
    region.type = r % 2 ? ElementType{ElementKind::opaque, 24, "Particle"}
                        : ElementType{ElementKind::f64, 8, ""};
    region.shape = r % 3 ? Shape(r, 7, 0) : Shape();
    region.bytes = region_bytes + r;
    region.first_block = manifest.fingerprints.size();
    for (std::uint64_t b = 0; b < manifest.blocks_of(region); ++b) {
      manifest.fingerprints.push_back({b, ~r});
      manifest.holders.push_back(static_cast<std::uint8_t>(manifest.holders.size() % segments));
    }
    manifest.regions.push_back(region);
  }
  return manifest;
}

std::vector<std::byte> encode(const Manifest& manifest) {
  VectorSink sink;
  const auto encoded = encode_manifest(manifest, sink);
  EXPECT_TRUE(encoded) << encoded.error().message();
  return std::move(sink.bytes());
}

void expect_same(const Manifest& a, const Manifest& b) {
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.parent, b.parent);
  EXPECT_EQ(a.application, b.application);
  EXPECT_EQ(a.hash, b.hash);
  EXPECT_EQ(a.block_bytes, b.block_bytes);
  EXPECT_EQ(a.time_ns, b.time_ns);
  EXPECT_EQ(std::memcmp(&a.ledger, &b.ledger, sizeof(Ledger)), 0);
  EXPECT_EQ(a.segments, b.segments);
  EXPECT_EQ(a.fingerprints, b.fingerprints);
  EXPECT_EQ(a.holders, b.holders);
  ASSERT_EQ(a.regions.size(), b.regions.size());
  for (std::size_t i = 0; i < a.regions.size(); ++i) {
    EXPECT_EQ(a.regions[i].name, b.regions[i].name);
    EXPECT_EQ(a.regions[i].type, b.regions[i].type);
    EXPECT_EQ(a.regions[i].shape, b.regions[i].shape);
    EXPECT_EQ(a.regions[i].bytes, b.regions[i].bytes);
    EXPECT_EQ(a.regions[i].first_block, b.regions[i].first_block);
  }
}

void expect_round_trip(const Manifest& manifest) {
  const auto file = encode(manifest);
  EXPECT_EQ(file.size() % kFileAlignment, 0u);
  const auto decoded = decode_manifest(file);
  ASSERT_TRUE(decoded) << decoded.error().message();
  expect_same(manifest, *decoded);
}

TEST(Manifest, ComesBackAsItWas) {
  expect_round_trip(make_manifest(0, 0, 0));
  expect_round_trip(make_manifest(1, 0, 1));
  expect_round_trip(make_manifest(3, 0, 1));
  expect_round_trip(make_manifest(3, 511, 2));
  expect_round_trip(make_manifest(2, 1 << 20, 250));
  expect_round_trip(make_manifest(10000, 1, 3));
}

TEST(Manifest, LedgerHasTheOrderOfTheDocument) {
  const auto file = encode(make_manifest(0, 0, 0));
  const std::uint64_t in_order[] = {12, 100, 10, 20, 30, 5, 35, 7, 36, 4096, 1, 2, 3, 4, 10, 99};
  EXPECT_EQ(std::memcmp(file.data() + 96, in_order, sizeof(in_order)), 0);
}

TEST(Manifest, AllSizesAroundTheAlignmentComeBack) {
  for (std::uint64_t blocks = 200; blocks < 240; ++blocks)
    expect_round_trip(make_manifest(1, 512 * blocks, 1));
}

TEST(Manifest, LongestNamesAndMostDimensionsComeBack) {
  Manifest manifest = make_manifest(1, 1000, 1);
  manifest.application.assign(255, 'a');
  manifest.regions[0].name = "\u00e4" + std::string(253, 'n');
  manifest.regions[0].type.name.assign(255, 't');
  manifest.regions[0].shape = Shape(std::vector<std::uint64_t>(255, UINT64_MAX));
  expect_round_trip(manifest);
}

TEST(Manifest, SerializedRegionsAndEveryHashComeBack) {
  Manifest manifest = make_manifest(1, 1000, 1);
  manifest.regions[0].type = {ElementKind::serialized, 1, ""};
  for (const HashKind hash : {HashKind::xxh3, HashKind::md5, HashKind::sha1, HashKind::sha256}) {
    manifest.hash = hash;
    expect_round_trip(manifest);
  }
}

TEST(Manifest, DecodesFromUnalignedMemory) {
  const Manifest manifest = make_manifest(3, 5000, 2);
  auto file = encode(manifest);
  file.insert(file.begin(), std::byte{0});
  const auto decoded = decode_manifest(std::span(file).subspan(1));
  ASSERT_TRUE(decoded);
  expect_same(manifest, *decoded);
}

TEST(Manifest, EveryFlippedBitIsFound) {
  expect_every_flip_is_refused(encode(make_manifest(3, 1000, 2)), decode_manifest);
}

TEST(Manifest, EveryCutIsCorruption) {
  expect_every_cut_is_corruption(encode(make_manifest(3, 100000, 2)), decode_manifest);
}

TEST(Manifest, BytesAfterTheEndAreCorruption) {
  auto file = encode(make_manifest(3, 1000, 2));
  file.resize(file.size() + kFileAlignment);
  EXPECT_EQ(decode_manifest(file).error().code(), Code::corruption);
}

TEST(Manifest, NewerVersionIsUnsupported) {
  expect_newer_version_is_unsupported(encode(make_manifest(3, 1000, 2)), decode_manifest);
}

/// Fields that lie, under a checksum that fits: only the rules can refuse them.
class HostileManifest : public testing::Test {
 protected:
  static constexpr std::size_t kSegments = 256 + 4;  // after "heat"
  static constexpr std::size_t kRegions = kSegments + 2 * 32;
  static constexpr std::size_t kName = kRegions + 16;  // the first region has no dimensions

  void fix_checksum() {
    const auto sum = Checksum128::of(std::span(file_).first(file_.size() - 16));
    overwrite(file_, file_.size() - 16, sum.low);
    overwrite(file_, file_.size() - 8, sum.high);
  }
  template <class T>
  void expect_corruption(std::size_t offset, T value) {
    const auto good = file_;
    overwrite(file_, offset, value);
    fix_checksum();
    const auto decoded = decode_manifest(file_);
    ASSERT_FALSE(decoded) << "offset " << offset << ", value " << value;
    EXPECT_EQ(decoded.error().code(), Code::corruption);
    file_ = good;
  }

  Manifest manifest_ = make_manifest(3, 1024, 2);
  std::vector<std::byte> file_ = encode(manifest_);
};

TEST_F(HostileManifest, TheFixtureItselfIsAccepted) {
  fix_checksum();
  EXPECT_TRUE(decode_manifest(file_));
}

TEST_F(HostileManifest, HeaderFieldsAreJudged) {
  expect_corruption(8, std::uint32_t{0});      // format version
  expect_corruption(12, std::uint32_t{0});     // block size
  expect_corruption(12, std::uint32_t{1024});  // other numbers of blocks
  expect_corruption(12, UINT32_MAX);
  expect_corruption(16, std::uint64_t{8192});  // size of the file
  expect_corruption(64, std::uint32_t{8});     // rank
  expect_corruption(68, std::uint32_t{0});     // ranks
  expect_corruption(240, std::uint8_t{4});     // hash
  expect_corruption(241, std::uint8_t{0});     // length of the application's name
  expect_corruption(241, std::uint8_t{255});
  for (std::size_t at = 242; at < 256; ++at) expect_corruption(at, std::uint8_t{1});
  expect_corruption(256, std::uint8_t{'\n'});  // the application
}

TEST_F(HostileManifest, CountsAreBoundedByTheBytesPresent) {
  for (const std::uint64_t count :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{9}, std::uint64_t{1} << 40,
        std::uint64_t{1} << 60, UINT64_MAX, UINT64_MAX / 16, UINT64_MAX / 17 + 1})
    expect_corruption(224, count);  // blocks
  for (const std::uint32_t count : {0u, 1u, 2u, 4u, 250u, 251u, 1u << 31, UINT32_MAX}) {
    expect_corruption(232, count);                  // regions
    if (count != 2) expect_corruption(236, count);  // segments
  }
}

TEST_F(HostileManifest, SegmentsAreJudged) {
  expect_corruption(kSegments + 28, std::uint32_t{1});  // reserved
  // The second becomes the first.
  overwrite(file_, kSegments + 32, manifest_.segments[0].id.key.run);
  overwrite(file_, kSegments + 40, manifest_.segments[0].id.key.version);
  expect_corruption(kSegments + 56, manifest_.segments[0].id.rank);
}

TEST_F(HostileManifest, RegionsAreJudged) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{512}, std::uint64_t{1025},
                                    UINT64_MAX, UINT64_MAX - 511, UINT64_MAX - 512})
    expect_corruption(kRegions, bytes);
  expect_corruption(kRegions + 8, std::uint32_t{0});   // size of an element
  expect_corruption(kRegions + 12, std::uint8_t{15});  // kind
  expect_corruption(kRegions + 13, std::uint8_t{1});   // dimensions
  expect_corruption(kRegions + 13, std::uint8_t{255});
  expect_corruption(kRegions + 14, std::uint8_t{0});  // length of the name
  expect_corruption(kRegions + 14, std::uint8_t{255});
  expect_corruption(kRegions + 15, std::uint8_t{255});  // length of the type's name
  expect_corruption(kName, std::uint8_t{0});
  expect_corruption(kName, std::uint8_t{0x80});
  expect_corruption(kName + 7, std::uint8_t{'1'});  // the second region's name
}

TEST_F(HostileManifest, RegionWhoseSizeWrapsToNoBlocksIsCorruption) {
  manifest_ = make_manifest(1, 0, 2);
  file_ = encode(manifest_);
  expect_corruption(kRegions, UINT64_MAX);
}

TEST_F(HostileManifest, HoldersAndPaddingAreJudged) {
  const std::size_t blocks = manifest_.fingerprints.size();
  std::size_t tables_end = kRegions;
  for (const RegionRecord& region : manifest_.regions)
    tables_end += 16 + 8 * region.shape.dimensions() + region.name.size() + region.type.name.size();
  const std::size_t arrays = (tables_end + 15) / 16 * 16;
  ASSERT_LT(tables_end, arrays);
  expect_corruption(tables_end, std::uint8_t{1});
  expect_corruption(arrays + 16 * blocks, std::uint8_t{2});
  expect_corruption(arrays + 17 * blocks - 1, std::uint8_t{255});
  expect_corruption(arrays + 17 * blocks, std::uint8_t{1});
  expect_corruption(file_.size() - 33, std::uint8_t{1});
  expect_corruption(file_.size() - 32, std::uint8_t{'X'});
  expect_corruption(file_.size() - 24, std::uint64_t{8192});
}

TEST_F(HostileManifest, ASecondPageOfPaddingIsCorruption) {
  file_.insert(file_.end() - 32, kFileAlignment, std::byte{0});
  overwrite(file_, file_.size() - 24, std::uint64_t{file_.size()});
  expect_corruption(16, std::uint64_t{file_.size()});
}

TEST(Manifest, WriterRefusesWhatReadersWouldRefuse) {
  const auto expect_invalid = [](const std::function<void(Manifest&)>& spoil) {
    Manifest manifest = make_manifest(3, 1000, 2);
    spoil(manifest);
    VectorSink sink;
    const auto encoded = encode_manifest(manifest, sink);
    ASSERT_FALSE(encoded);
    EXPECT_EQ(encoded.error().code(), Code::invalid_argument);
    EXPECT_TRUE(sink.bytes().empty());
  };
  expect_invalid([](Manifest& m) { m.origin.rank = m.origin.ranks; });
  expect_invalid([](Manifest& m) { m.block_bytes = 0; });
  expect_invalid([](Manifest& m) { m.application = ""; });
  expect_invalid([](Manifest& m) { m.holders.pop_back(); });
  expect_invalid([](Manifest& m) { m.holders[0] = 2; });
  expect_invalid([](Manifest& m) { m.fingerprints.pop_back(), m.holders.pop_back(); });
  expect_invalid([](Manifest& m) { m.segments[1] = m.segments[0]; });
  expect_invalid([](Manifest& m) { m.segments = make_manifest(0, 0, 251).segments; });
  expect_invalid([](Manifest& m) { m.regions[1].name = m.regions[0].name; });
  expect_invalid([](Manifest& m) { m.regions[1].name = std::string(256, 'x'); });
  expect_invalid([](Manifest& m) { m.regions[1].type.name = "tab\t"; });
  expect_invalid([](Manifest& m) { m.regions[1].first_block++; });
  expect_invalid([](Manifest& m) { m.regions[2].bytes = UINT64_MAX; });
  expect_invalid([](Manifest& m) { m.regions[0].type.bytes = 0; });
  expect_invalid(
      [](Manifest& m) { m.regions[0].shape = Shape(std::vector<std::uint64_t>(256, 1)); });
}

}  // namespace
}  // namespace belay::format
