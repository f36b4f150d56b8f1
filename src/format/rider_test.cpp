// SPDX-License-Identifier: Apache-2.0
#include "format/rider.hpp"

#include "format/checksum.hpp"
#include "format/damage_test.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"

namespace belay::format {
namespace {

constexpr Rank kRanks = 9;

Rider example() {
  return {{{{{1, 2}, 3}, 512, 5}, {{{1, 4}, 0}, 16384, 0}, {{{2, 4}, 8}, 4096, 70}},
          {{3, 4096}, {8, 12288}}};
}

auto decoder_for(std::uint64_t rider_bytes) {
  return [rider_bytes](std::span<const std::byte> tables) {
    return decode_rider_tables(tables, rider_bytes, kRanks);
  };
}

/// With a checksum that is right again, so that the field itself is judged.
template <class T>
std::vector<std::byte> with(std::size_t offset, T value) {
  auto bytes = encode_rider_tables(example());
  overwrite(bytes, offset, value);
  overwrite(bytes, bytes.size() - 8, checksum64(std::span(bytes).first(bytes.size() - 8)));
  return bytes;
}

TEST(Rider, ComesBackAsItWas) {
  for (const Rider& rider : {example(), Rider{}, Rider{{}, {{0, 4096}}}}) {
    const auto tables = encode_rider_tables(rider);
    EXPECT_EQ(tables.size(), rider.table_bytes());
    const auto front = decode_rider_front(std::span(tables).first(kRiderFrontBytes), rider.bytes());
    ASSERT_TRUE(front) << front.error().message();
    EXPECT_EQ(*front, tables.size());
    const auto decoded = decoder_for(rider.bytes())(tables);
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(*decoded, rider);
  }
}

TEST(Rider, PartsFollowEachOtherAndManifestsLieOnPages) {
  const Rider rider = example();
  EXPECT_EQ(rider.blocks_offset(0), kSegmentHeaderBytes + rider.table_bytes());
  EXPECT_EQ(rider.blocks_offset(1), rider.blocks_offset(0) + Rider::blocks_bytes(5));
  EXPECT_EQ(rider.manifest_offset(0) % kFileAlignment, 0u);
  EXPECT_EQ(rider.manifest_offset(1), rider.manifest_offset(0) + 4096);
  EXPECT_EQ(kSegmentHeaderBytes + rider.bytes(), rider.manifest_offset(1) + 12288);
}

TEST(Rider, EveryFlipAndEveryCutOfTablesIsRefused) {
  const auto tables = encode_rider_tables(example());
  expect_every_flip_is_refused(tables, decoder_for(example().bytes()));
  expect_every_cut_is_corruption(tables, decoder_for(example().bytes()));
  expect_newer_version_is_unsupported(tables, decoder_for(example().bytes()));
}

TEST(Rider, HostileTablesAreCorruption) {
  const auto refused = [](const std::vector<std::byte>& bytes, std::uint64_t rider_bytes) {
    const auto decoded = decoder_for(rider_bytes)(bytes);
    ASSERT_FALSE(decoded);
    EXPECT_EQ(decoded.error().code(), Code::corruption);
  };
  const std::uint64_t all = example().bytes();
  refused(with<std::uint64_t>(16, ~std::uint64_t{0}), all);       // segments
  refused(with<std::uint64_t>(24, std::uint64_t{1} << 60), all);  // manifests
  refused(with<Rank>(32 + 16, kRanks), all);
  refused(with<std::uint32_t>(32 + 20, 100), all);                    // block_bytes
  refused(with<std::uint64_t>(32 + 24, ~std::uint64_t{0} / 8), all);  // blocks
  refused(with<std::uint64_t>(32 + 32, 0), all);                      // order of segments
  refused(with<Rank>(32 + 96, 8), all);                               // order of ranks
  refused(with<std::uint64_t>(32 + 96 + 8, 4097), all);
  refused(with<std::uint64_t>(32 + 96 + 8, ~std::uint64_t{0} / 4096 * 4096), all);
  refused(encode_rider_tables(example()), all + 4096);
  refused(encode_rider_tables(example()), all - 4096);
}

TEST(Rider, BlocksComeBackAndDamageIsRefused) {
  const BundledSegment segment{{{1, 2}, 3}, 512, 3};
  const std::vector<BundledBlock> blocks = {
      {{1, 2}, 512, 7}, {{3, 4}, 1, kNotInBundle}, {{5, 6}, 100, 0}};
  const auto decode = [&](std::span<const std::byte> bytes) {
    return decode_bundled_blocks(bytes, segment, 8);
  };
  VectorSink sink;
  std::size_t next = 0;
  ASSERT_TRUE(encode_bundled_blocks(sink, blocks.size(), [&] { return blocks[next++]; }));
  const auto& bytes = sink.bytes();
  const auto decoded = decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, blocks);
  expect_every_flip_is_refused(bytes, decode);
  expect_every_cut_is_corruption(bytes, decode);
  EXPECT_FALSE(decode_bundled_blocks(bytes, segment, 7)) << "an entry that the index does not have";
}

}  // namespace
}  // namespace belay::format
