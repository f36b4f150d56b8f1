// SPDX-License-Identifier: Apache-2.0
#include "redundancy/stripe_layout.hpp"

#include "redundancy/stripe_test.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace belay::redundancy {
namespace {

constexpr ErasureScheme kSchemes[] = {{1, 1}, {2, 1}, {3, 1}, {2, 2}, {4, 2},
                                      {5, 3}, {6, 3}, {8, 2}, {1, 4}};

StripeLayout layout_of(const ErasureScheme& scheme, std::vector<std::uint64_t> lengths) {
  auto layout = StripeLayout::make(scheme, std::move(lengths));
  EXPECT_TRUE(layout) << layout.error().message();
  return *std::move(layout);
}

TEST(NodeSets, HaveNearlyEqualSizesAndEveryNodeOnce) {
  for (const ErasureScheme& scheme : kSchemes)
    for (std::uint32_t nodes = scheme.width(); nodes < 120; ++nodes) {
      const auto sets = form_sets(nodes, scheme);
      ASSERT_TRUE(sets);
      ASSERT_EQ(sets->count(), nodes / scheme.width());
      std::uint32_t smallest = nodes, largest = 0, next = 0;
      std::vector<bool> seen(nodes);
      for (std::uint32_t set = 0; set < sets->count(); ++set) {
        smallest = std::min(smallest, sets->size(set));
        largest = std::max(largest, sets->size(set));
        for (std::uint32_t place = 0; place < sets->size(set); ++place, ++next) {
          const std::uint32_t node = sets->node_at(set, place);
          ASSERT_LT(node, nodes);
          ASSERT_FALSE(seen[node]);
          seen[node] = true;
          ASSERT_EQ(sets->set_of(node), set);
          ASSERT_EQ(sets->place_of(node), place);
        }
      }
      ASSERT_EQ(next, nodes);
      ASSERT_GE(smallest, scheme.width());
      ASSERT_LT(largest, 2 * scheme.width());
      ASSERT_LE(largest - smallest, 1u);
    }
}

TEST(NodeSets, NeighboursAreInDifferentSets) {
  const auto sets = form_sets(100, {4, 2});
  ASSERT_TRUE(sets);
  for (std::uint32_t node = 1; node < 100; ++node)
    EXPECT_NE(sets->set_of(node), sets->set_of(node - 1));
}

TEST(NodeSets, TooFewNodesIsAnErrorThatSaysHowManyItTakes) {
  const auto sets = form_sets(5, {4, 2});
  ASSERT_FALSE(sets);
  EXPECT_EQ(sets.error().code(), Code::invalid_argument);
  EXPECT_EQ(sets.error().message(),
            "erasure:4+2 needs 6 nodes, and there are 5; use more nodes or a smaller scheme");
  EXPECT_FALSE(form_sets(0, {1, 1}));
  EXPECT_FALSE(form_sets(10, {0, 1}));
}

TEST(StripeLayout, IsWhatItsHeaderSays) {
  // 4 nodes, 2 + 1: member 0 is cut after 128 bytes, and codeword 3 = (3, 0 | 1).
  const StripeLayout layout = layout_of({2, 1}, {200, 0, 64, 1000});
  using Piece = StripeLayout::Piece;
  EXPECT_EQ(layout.contributions(0), (std::vector<Piece>{{0, 0, {0, 128}}, {3, 1, {128, 72}}}));
  EXPECT_EQ(layout.contributions(1), std::vector<Piece>{});
  EXPECT_EQ(layout.contributions(2), (std::vector<Piece>{{2, 0, {0, 64}}}));
  EXPECT_EQ(layout.contributions(3), (std::vector<Piece>{{3, 0, {0, 512}}, {2, 1, {512, 488}}}));
  EXPECT_EQ(layout.shards(1), (std::vector<Piece>{{3, 2, {0, 512}}}));
  EXPECT_EQ(layout.shards(2), (std::vector<Piece>{{0, 2, {0, 128}}}));
  EXPECT_EQ(layout.shards(3), (std::vector<Piece>{{1, 2, {0, 0}}}));
  EXPECT_EQ(layout.shards(0), (std::vector<Piece>{{2, 2, {0, 488}}}));
}

/// For random lengths of members: calls check(layout).
template <class Check>
void for_many_layouts(Check&& check) {
  std::mt19937_64 random(1);
  for (const ErasureScheme& scheme : kSchemes)
    for (std::uint32_t nodes = scheme.width(); nodes < 2 * scheme.width(); ++nodes)
      for (const std::uint64_t most : {0u, 1u, 63u, 64u, 1000u, 100'000u}) {
        check(layout_of(scheme, random_lengths(random, nodes, most)));
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(StripeLayout, ACodewordHasEachNodeOnceAtMost) {
  for_many_layouts([](const StripeLayout& layout) {
    for (std::uint32_t codeword = 0; codeword < layout.nodes(); ++codeword) {
      std::set<std::uint32_t> places;
      for (std::uint32_t at = 0; at < layout.scheme().width(); ++at)
        places.insert(layout.part_at(codeword, at).place);
      ASSERT_EQ(places.size(), layout.scheme().width());
    }
  });
}

TEST(StripeLayout, EveryByteOfAMemberIsInOneCodeword) {
  for_many_layouts([](const StripeLayout& layout) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
    for (std::uint32_t place = 0; place < layout.nodes(); ++place) {
      std::uint64_t end = 0;
      for (const auto& [codeword, position, range] : layout.contributions(place)) {
        ASSERT_EQ(range.offset, end);
        ASSERT_EQ(range.offset % StripeLayout::kChunkUnit, 0u);
        ASSERT_GT(range.length, 0u);
        end = range.end();
        ASSERT_TRUE(taken.insert({codeword, position}).second);
        ASSERT_EQ(layout.part_at(codeword, position), (StripePart{place}));
        ASSERT_EQ(layout.range_at(codeword, position), range);
        for (const std::uint64_t offset : {range.offset, range.end() - 1})
          ASSERT_EQ(layout.piece_with({place}, offset),
                    (StripeLayout::Piece{codeword, position, range}));
      }
      ASSERT_EQ(end, layout.bytes_of({place}));
    }
  });
}

TEST(StripeLayout, EveryNodeKeepsMShardsAsLongAsTheLongestChunk) {
  for_many_layouts([](const StripeLayout& layout) {
    for (std::uint32_t place = 0; place < layout.nodes(); ++place) {
      const auto shards = layout.shards(place);
      ASSERT_EQ(shards.size(), layout.scheme().shards);
      for (std::uint32_t i = 0; i < shards.size(); ++i) {
        const auto& [codeword, position, range] = shards[i];
        const StripePart part{place, i};
        ASSERT_EQ(position, layout.scheme().members + i);
        ASSERT_EQ(layout.part_at(codeword, position), part);
        ASSERT_EQ(layout.bytes_of(part), range.length);
        std::uint64_t longest = 0;
        for (std::uint32_t at = 0; at < layout.scheme().members; ++at)
          longest = std::max(longest, layout.range_at(codeword, at).length);
        ASSERT_EQ(range, (Range{0, longest}));
        if (longest == 0) continue;
        ASSERT_EQ(layout.piece_with(part, longest - 1), shards[i]);
      }
    }
  });
}

TEST(StripeLayout, EqualMembersGiveEqualLoads) {
  for (const ErasureScheme& scheme : kSchemes) {
    const std::uint64_t bytes = scheme.members * 640;
    const StripeLayout layout =
        layout_of(scheme, std::vector<std::uint64_t>(scheme.width() + 1, bytes));
    for (std::uint32_t place = 0; place < layout.nodes(); ++place) {
      EXPECT_EQ(layout.contributions(place).size(), scheme.members);
      for (const auto& piece : layout.contributions(place)) EXPECT_EQ(piece.range.length, 640u);
      for (const auto& piece : layout.shards(place)) EXPECT_EQ(piece.range.length, 640u);
    }
  }
}

TEST(StripeLayout, TakesTheLongestMembersAndRefusesLongerOnes) {
  std::vector<std::uint64_t> lengths(3, StripeLayout::kMaxMemberBytes);
  const StripeLayout layout = layout_of({2, 1}, lengths);
  EXPECT_EQ(layout.contributions(0)[1].range.end(), StripeLayout::kMaxMemberBytes);
  lengths[1] += 1;
  EXPECT_FALSE(StripeLayout::make({2, 1}, lengths));
  EXPECT_FALSE(StripeLayout::make({2, 1}, {1, 2}));
  EXPECT_FALSE(StripeLayout::make({2, 0}, {1, 2, 3}));
}

}  // namespace
}  // namespace belay::redundancy
