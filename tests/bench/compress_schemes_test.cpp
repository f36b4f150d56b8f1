// SPDX-License-Identifier: Apache-2.0
#include "compress/belay_way.hpp"
#include "compress/schemes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace belay::bench {
namespace {

template <class T>
Variable variable_of(const std::string& name, const std::vector<T>& values, Shape shape = {}) {
  Variable variable = {name, element_type<T>(), shape.empty() ? Shape(values.size()) : shape, {}};
  Writer writer(variable.bytes);
  for (const T& value : values) writer.value(value);
  return variable;
}

/// Ranks that differ in numbers of elements, of which one lacks a variable that others have.
std::vector<Checkpoint> odd_ranks() {
  std::vector<Checkpoint> ranks(5);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::vector<double> field(3000 + 17 * rank);
    for (std::size_t i = 0; i < field.size(); ++i)
      field[i] = std::sin(static_cast<double>(i + rank) * 0.01);
    field[5] = std::numeric_limits<double>::quiet_NaN();
    field[6] = -std::numeric_limits<double>::infinity();
    field[7] = std::numeric_limits<double>::denorm_min();
    field[8] = -0.0;
    ranks[rank].push_back(variable_of("field", field));
    ranks[rank].push_back(
        variable_of("step", std::vector<std::int64_t>{static_cast<std::int64_t>(rank)}));
    if (rank != 2)
      ranks[rank].push_back(variable_of(
          "plane", std::vector<float>(30 * 20, 0.5f * static_cast<float>(rank)), {30, 20}));
    ranks[rank].push_back(variable_of("cells", std::vector<std::int32_t>(rank * 1000, 7)));
    ranks[rank].push_back(variable_of("text", std::vector<char>(101 + rank, 'x')));
  }
  return ranks;
}

std::vector<Scheme> every_scheme() {
  std::vector<Scheme> schemes;
  for (const Merging merging :
       {Merging::agnostic, Merging::agnostic_block, Merging::aware, Merging::aware_block})
    for (const int passes : {1, 2})
      for (const bool fpzip_for_doubles : {false, true}) {
        const bool in_blocks =
            merging == Merging::agnostic_block || merging == Merging::aware_block;
        schemes.push_back({merging, in_blocks ? 1000u : 0u, passes, fpzip_for_doubles});
      }
  return schemes;
}

TEST(CompressSchemes, BringBackEveryRank) {
  const auto ranks = odd_ranks();
  for (const Scheme& scheme : every_scheme())
    for (const std::size_t count : {std::size_t{1}, ranks.size()}) {
      const auto some = std::span(ranks).first(count);
      const Bytes packed = pack(some, scheme);
      EXPECT_LT(packed.size(), total_bytes(some)) << scheme.name();
      auto back = blank(some);
      unpack(packed, scheme, back);
      EXPECT_TRUE(std::equal(back.begin(), back.end(), some.begin(), some.end()))
          << scheme.name() << ", " << count << " ranks";
    }
}

TEST(CompressSchemes, MergeBlocksInTurn) {
  const std::vector<Checkpoint> ranks = {{variable_of("a", std::vector<char>(250, 'p'))},
                                         {variable_of("a", std::vector<char>(120, 'q'))}};
  // Nothing but the order of blocks tells these apart: what gzip sees must be that of the paper.
  Bytes expected;
  for (const auto& [letter, count] :
       {std::pair('p', 100), {'q', 100}, {'p', 100}, {'q', 20}, {'p', 50}})
    expected.insert(expected.end(), static_cast<std::size_t>(count), std::byte(letter));
  const Bytes packed = pack(ranks, {Merging::agnostic_block, 100, 1, false});
  Reader reader(packed);
  Stream merged = {element_type<std::byte>(), {}, Bytes(reader.value<std::uint64_t>())};
  gzip().decode(reader.array<std::byte>(), merged);
  EXPECT_EQ(merged.bytes, expected);
}

TEST(CompressSchemes, MatchVariablesByNameAndType) {
  const auto ranks = odd_ranks();
  const auto merged = match_variables(ranks);
  ASSERT_EQ(merged.size(), 5u);
  EXPECT_EQ(merged[0].name, "field");
  EXPECT_EQ(merged[0].shape, Shape(5 * 3000 + 17 * 10));
  EXPECT_TRUE(merged[1].is_small);
  EXPECT_EQ(merged[2].ranks.size(), 4u);
  EXPECT_EQ(merged[2].shape, Shape(4 * 30, 20));
  EXPECT_FALSE(merged[4].is_small);
  const std::vector<Checkpoint> other = {{variable_of("a", std::vector<float>{1})},
                                         {variable_of("a", std::vector<std::int32_t>{1})}};
  EXPECT_EQ(match_variables(other).size(), 2u);
}

TEST(CompressSchemes, BelayBringsBackEveryRankWithEveryCodec) {
  const auto ranks = odd_ranks();
  auto names = codec_names();
  names.push_back("auto");
  for (const std::string& name : names) {
    BelayWay way(name, 200e6);
    auto back = blank(ranks);
    way.unpack(way.pack(ranks), back);
    EXPECT_EQ(back, ranks) << name;
  }
}

}  // namespace
}  // namespace belay::bench
