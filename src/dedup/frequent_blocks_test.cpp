// SPDX-License-Identifier: Apache-2.0
#include "dedup/frequent_blocks.hpp"

#include "dedup/plan_world_test.hpp"

#include <cstring>

namespace belay::dedup {
namespace {

constexpr std::size_t kRoomy = 1000;

/// Names that sort as their numbers.
Block named(std::uint64_t number, std::uint32_t length = 100) { return {{0, number}, length}; }

std::vector<Rank> designated(const FrequentBlocks& table, const Block& block) {
  for (std::size_t i = 0; i < table.entries().size(); ++i)
    if (table.entries()[i].block() == block)
      return {table.designated(i).begin(), table.designated(i).end()};
  return {};
}

std::vector<std::uint64_t> numbers(const FrequentBlocks& table) {
  std::vector<std::uint64_t> numbers;
  for (const auto& entry : table.entries()) numbers.push_back(entry.fingerprint.high);
  return numbers;
}

std::uint64_t load_of(const FrequentBlocks& table, Rank rank) {
  for (const auto& load : table.loads())
    if (load.rank == rank) return load.bytes;
  return 0;
}

FrequentBlocks local(const std::vector<Block>& blocks, Rank rank, std::size_t capacity = kRoomy) {
  return FrequentBlocks::from_local(blocks, rank, capacity);
}

TEST(NodeLayout, FewerNodesThanCopiesIsAnInvalidArgument) {
  const auto layout = NodeLayout::make({7, 7, 9, 9}, 3);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code(), Code::invalid_argument);
  EXPECT_NE(layout.error().message().find("4 ranks run on 2"), std::string::npos);
  EXPECT_TRUE(NodeLayout::make({7, 7, 9, 9}, 2));
}

TEST(NodeLayout, NoRanksNoCopiesAndTooManyAreInvalidArguments) {
  EXPECT_FALSE(NodeLayout::make({}, 1));
  EXPECT_FALSE(NodeLayout::make({0}, 0));
  std::vector<Node> nodes(300);
  for (Node node = 0; node < nodes.size(); ++node) nodes[node] = node;
  EXPECT_TRUE(NodeLayout::make(nodes, 255));
  EXPECT_FALSE(NodeLayout::make(nodes, 256));
}

TEST(FrequentBlocks, OfOneRankAreInOrderAndDesignateIt) {
  const auto table = local({named(3), named(1), named(2, 7)}, 5);
  EXPECT_EQ(numbers(table), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(designated(table, named(2, 7)), std::vector<Rank>{5});
  EXPECT_EQ(table.entries()[1].frequency, 1u);
  EXPECT_EQ(load_of(table, 5), 207u);
}

TEST(FrequentBlocks, OfOneRankKeepTheSmallestButAllAreItsLoad) {
  const auto table = local({named(4), named(1), named(3), named(2)}, 0, 2);
  EXPECT_EQ(numbers(table), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(load_of(table, 0), 400u);
}

TEST(FrequentBlocks, OfOneRankKeepTheSmallestHoweverFingerprintsLie) {
  std::vector<std::vector<Block>> cases(4);
  for (std::uint64_t i = 0; i < 5000; ++i) {
    cases[0].push_back(block_of(i, 100));
    cases[1].push_back(named(mixed(i) % 1000, static_cast<std::uint32_t>(i + 1)));
    cases[2].push_back({{mixed(i), ~std::uint64_t{0} - i % 3}, 100});
    cases[3].push_back(i % 2 == 0 ? named(i) : Block{{i, ~std::uint64_t{0}}, 100});
  }
  for (std::vector<Block>& blocks : cases) {
    const auto table = local(blocks, 0, 1000);
    std::sort(blocks.begin(), blocks.end(), Before{});
    ASSERT_EQ(table.entries().size(), 1000u);
    for (std::size_t i = 0; i < 1000; ++i) ASSERT_EQ(table.entries()[i].block(), blocks[i]);
    EXPECT_TRUE(local(blocks, 0, 0).entries().empty());
    EXPECT_EQ(local(blocks, 0, 5000).entries().size(), 5000u);
  }
}

TEST(FrequentBlocks, MergeAddsFrequenciesAndJoinsDesignatedRanks) {
  const NodeLayout layout = even_layout(3, 1, 3);
  const auto table = FrequentBlocks::merge(local({named(1), named(2)}, 0),
                                           local({named(2), named(3)}, 2), layout, kRoomy);
  EXPECT_EQ(numbers(table), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(table.entries()[1].frequency, 2u);
  EXPECT_EQ(designated(table, named(2)), (std::vector<Rank>{0, 2}));
  EXPECT_EQ(designated(table, named(3)), std::vector<Rank>{2});
}

TEST(FrequentBlocks, EqualFingerprintsOfOtherLengthsStayApart) {
  const NodeLayout layout = even_layout(2, 1, 2);
  const auto table =
      FrequentBlocks::merge(local({named(1, 10)}, 0), local({named(1, 11)}, 1), layout, kRoomy);
  ASSERT_EQ(table.entries().size(), 2u);
  EXPECT_EQ(designated(table, named(1, 10)), std::vector<Rank>{0});
  EXPECT_EQ(designated(table, named(1, 11)), std::vector<Rank>{1});
}

TEST(FrequentBlocks, OfTwoRanksOnOneNodeTheLessLoadedIsDesignated) {
  const NodeLayout layout = layout_of({4, 4, 9}, 2);
  const auto heavy = local({named(1), named(2), named(3)}, 0);
  const auto table = FrequentBlocks::merge(heavy, local({named(1)}, 1), layout, kRoomy);
  EXPECT_EQ(designated(table, named(1)), std::vector<Rank>{1});
  EXPECT_EQ(table.entries()[0].frequency, 2u);
  EXPECT_EQ(load_of(table, 0), 200u);
  EXPECT_EQ(load_of(table, 1), 100u);
}

TEST(FrequentBlocks, TheMostLoadedAreDroppedFirst) {
  const NodeLayout layout = even_layout(3, 1, 2);
  const auto a = local({named(1), named(2)}, 0);
  const auto b = local({named(1), named(2), named(3)}, 1);
  const auto c = local({named(1)}, 2);
  const auto ab = FrequentBlocks::merge(a, b, layout, kRoomy);
  const auto table = FrequentBlocks::merge(ab, c, layout, kRoomy);
  EXPECT_EQ(designated(table, named(1)), (std::vector<Rank>{0, 2}));
  EXPECT_EQ(table.entries()[0].frequency, 3u);
  EXPECT_EQ(load_of(table, 1), 200u);
}

TEST(FrequentBlocks, WhenTheTableIsFullTheMostFrequentStay) {
  const NodeLayout layout = even_layout(2, 1, 2);
  const auto a = local({named(1), named(2), named(5), named(8)}, 0);
  const auto b = local({named(3), named(5), named(8), named(9)}, 1);
  EXPECT_EQ(numbers(FrequentBlocks::merge(a, b, layout, 2)), (std::vector<std::uint64_t>{5, 8}));
  EXPECT_EQ(numbers(FrequentBlocks::merge(a, b, layout, 1)), std::vector<std::uint64_t>{5});
  EXPECT_EQ(numbers(FrequentBlocks::merge(a, b, layout, 4)),
            (std::vector<std::uint64_t>{1, 2, 5, 8}))
      << "of equals the smallest";
  EXPECT_TRUE(FrequentBlocks::merge(a, b, layout, 0).entries().empty());
  EXPECT_EQ(FrequentBlocks::merge(a, b, layout, 6).entries().size(), 6u);
}

TEST(FrequentBlocks, WhatIsCutStaysTheLoadOfWhoHasIt) {
  const NodeLayout layout = even_layout(2, 1, 1);
  const auto table = FrequentBlocks::merge(local({named(1), named(2)}, 0),
                                           local({named(2), named(3)}, 1), layout, 1);
  EXPECT_EQ(numbers(table), std::vector<std::uint64_t>{2});
  EXPECT_EQ(load_of(table, 0) + load_of(table, 1), 300u);
}

TEST(FrequentBlocks, DropUnsharedLeavesWhatSeveralRanksHave) {
  const NodeLayout layout = even_layout(2, 1, 2);
  auto table = FrequentBlocks::merge(local({named(1), named(2)}, 0), local({named(2), named(3)}, 1),
                                     layout, kRoomy);
  table.drop_unshared();
  EXPECT_EQ(numbers(table), std::vector<std::uint64_t>{2});
  EXPECT_EQ(designated(table, named(2)), (std::vector<Rank>{0, 1}));
}

TEST(FrequentBlocks, MergeDoesNotDependOnTheOrderOfTheTwo) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const World world = random_world(seed);
    FrequentBlocks sum;
    for (Rank rank = 0; rank < world.layout.ranks(); ++rank) {
      const auto next = FrequentBlocks::from_local(world.blocks[rank], rank, world.capacity);
      const auto one = FrequentBlocks::merge(sum, next, world.layout, world.capacity);
      ASSERT_EQ(one, FrequentBlocks::merge(next, sum, world.layout, world.capacity)) << seed;
      ASSERT_LE(one.entries().size(), world.capacity);
      sum = one;
    }
  }
}

TEST(FrequentBlocks, LoadsAreTheBytesThatRanksAreDesignatedFor) {
  World world = random_world(3);
  world.capacity = kRoomy * 10;
  for (auto& blocks : world.blocks) blocks = distinct(blocks);
  const FrequentBlocks table = merged_table(world, Tree::random);
  std::vector<std::uint64_t> expected(world.layout.ranks());
  for (std::size_t i = 0; i < table.entries().size(); ++i)
    for (const Rank rank : table.designated(i)) expected[rank] += table.entries()[i].length;
  for (Rank rank = 0; rank < world.layout.ranks(); ++rank)
    EXPECT_EQ(load_of(table, rank), expected[rank]);
}

class FrequentBlocksBytes : public ::testing::Test {
 protected:
  Result<FrequentBlocks> decode(const std::vector<std::byte>& bytes) const {
    return FrequentBlocks::decode(bytes, layout_, 10);
  }
  template <class T>
  void expect_refused_with(std::size_t offset, T value) const {
    std::vector<std::byte> bytes = bytes_;
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
    ASSERT_NE(bytes, bytes_) << offset;
    const auto decoded = decode(bytes);
    ASSERT_FALSE(decoded) << "value " << +value << " at " << offset;
    EXPECT_EQ(decoded.error().code(), Code::corruption);
  }

  NodeLayout layout_ = layout_of({0, 0, 1, 2}, 2);
  FrequentBlocks table_ = FrequentBlocks::merge(local({named(1), named(2)}, 1),
                                                local({named(2), named(3)}, 2), layout_, 10);
  std::vector<std::byte> bytes_ = table_.encode();
};

TEST_F(FrequentBlocksBytes, ComeBackAsTheyWere) {
  const auto decoded = decode(bytes_);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, table_);
  const auto nothing = decode(FrequentBlocks().encode());
  ASSERT_TRUE(nothing);
  EXPECT_EQ(*nothing, FrequentBlocks());
}

TEST_F(FrequentBlocksBytes, CutAnywhereOrTooLongAreRefused) {
  for (std::size_t size = 0; size < bytes_.size(); ++size)
    ASSERT_FALSE(decode({bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size)}));
  bytes_.push_back({});
  EXPECT_FALSE(decode(bytes_));
}

TEST_F(FrequentBlocksBytes, ThatCannotBeAreRefused) {
  constexpr std::size_t kEntries = 32;
  constexpr std::size_t kCounts = kEntries + 3 * 24;
  constexpr std::size_t kRanks = kCounts + 3;  // 1, 1 and 2, 2
  constexpr std::size_t kLoads = kRanks + 4 * 4;
  ASSERT_EQ(bytes_.size(), kLoads + 2 * 12);
  for (const std::uint64_t huge : {std::uint64_t{1} << 62, ~std::uint64_t{0}, std::uint64_t{11}})
    for (std::size_t field = 8; field < 32; field += 8) expect_refused_with(field, huge);
  expect_refused_with(0, std::uint64_t{1});
  expect_refused_with(kEntries + 8, std::uint64_t{2});     // a fingerprint: not in order
  expect_refused_with(kEntries + 16, std::uint32_t{0});    // length
  expect_refused_with(kEntries + 16, kMaxBlockBytes + 1);  // length
  expect_refused_with(kEntries + 20, std::uint32_t{0});    // frequency
  expect_refused_with(kEntries + 20, std::uint32_t{5});    // of 4 ranks
  expect_refused_with(kCounts, std::uint8_t{0});
  expect_refused_with(kCounts + 1, std::uint8_t{1});  // one rank too many in all
  expect_refused_with(kCounts + 1, std::uint8_t{3});
  expect_refused_with(kRanks, std::uint32_t{4});
  expect_refused_with(kRanks + 4, std::uint32_t{2});  // twice the same
  expect_refused_with(kRanks + 8, std::uint32_t{0});  // descending
  expect_refused_with(kLoads, std::uint32_t{4});
  expect_refused_with(kLoads, std::uint32_t{2});
}

TEST_F(FrequentBlocksBytes, WithTwoDesignatedRanksOnOneNodeAreRefused) {
  const NodeLayout other = layout_of({0, 1, 1, 2}, 2);
  EXPECT_FALSE(FrequentBlocks::decode(bytes_, other, 10));
}

TEST_F(FrequentBlocksBytes, OfALargerTableOrJobAreRefused) {
  EXPECT_FALSE(FrequentBlocks::decode(bytes_, layout_, 2));
  EXPECT_FALSE(FrequentBlocks::decode(bytes_, layout_of({0, 1}, 2), 10));
  EXPECT_FALSE(FrequentBlocks::decode(bytes_, layout_of({0, 0, 1, 2}, 1), 10));
}

TEST_F(FrequentBlocksBytes, WithFlippedBitsAreRefusedOrAnotherTableThatHolds) {
  Random random(1);
  for (std::size_t bit = 0; bit < bytes_.size() * 8; ++bit) {
    std::vector<std::byte> bytes = bytes_;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    if (below(random, 2) == 0) bytes[below(random, bytes.size())] = std::byte(random() & 0xff);
    const auto decoded = decode(bytes);
    if (!decoded) continue;
    ASSERT_EQ(decoded->encode(), bytes);
    const auto merged = FrequentBlocks::merge(*decoded, local({named(2)}, 3), layout_, 3);
    ASSERT_TRUE(FrequentBlocks::decode(merged.encode(), layout_, 3));
  }
}

TEST(FrequentBlocks, DesignatedRanksAreOfOneSetWhereOneHasEnough) {
  const auto layout =
      NodeLayout::make({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 3, Level::erasure(2, 2));
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->sets(), 3u);
  std::vector<Block> blocks;
  for (std::uint64_t i = 0; i < 50; ++i) blocks.push_back({{i * 7919, i << 58}, 512});
  std::vector<FrequentBlocks> tables;
  for (Rank rank = 0; rank < 12; ++rank)
    tables.push_back(FrequentBlocks::from_local(blocks, rank, 1000));
  for (std::size_t step = 1; step < tables.size(); step *= 2)
    for (std::size_t i = 0; i + step < tables.size(); i += 2 * step)
      tables[i] = FrequentBlocks::merge(tables[i], tables[i + step], *layout, 1000);
  std::set<std::uint32_t> sets;
  for (std::size_t i = 0; i < tables[0].entries().size(); ++i) {
    EXPECT_EQ(tables[0].designated(i).size(), 3u);
    EXPECT_TRUE(layout->are_enough(tables[0].designated(i)));
    sets.insert(layout->set_of(tables[0].designated(i).front()));
  }
  EXPECT_EQ(sets.size(), 3u) << "no set has all of them";
}

}  // namespace
}  // namespace belay::dedup
