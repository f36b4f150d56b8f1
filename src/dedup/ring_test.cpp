// SPDX-License-Identifier: Apache-2.0
#include "dedup/ring.hpp"

#include "dedup/plan_world_test.hpp"

#include <array>
#include <numeric>

namespace belay::dedup {
namespace {

std::vector<Rank> order_of(const Ring& ring) {
  std::vector<Rank> order;
  for (Rank place = 0; place < ring.size(); ++place) order.push_back(ring.rank_at(place));
  return order;
}

/// What each rank receives when all send `load` to each of K-1 other nodes.
std::vector<std::uint64_t> received(const NodeLayout& layout, const Ring& ring,
                                    const std::vector<std::uint64_t>& load) {
  std::vector<std::uint64_t> bytes(layout.ranks());
  for (Rank rank = 0; rank < layout.ranks(); ++rank) {
    std::vector<Node> taken{layout.node_of(rank)};
    while (taken.size() < layout.copies()) {
      const Rank receiver = ring.next(rank, taken);
      bytes[receiver] += load[rank];
      taken.push_back(layout.node_of(receiver));
    }
  }
  return bytes;
}

std::uint64_t most_received(const NodeLayout& layout, const Ring& ring,
                            const std::vector<std::uint64_t>& load) {
  const auto bytes = received(layout, ring, load);
  return *std::max_element(bytes.begin(), bytes.end());
}

TEST(Ring, UnshuffledIsTheOrderOfRanksWhenEachHasItsNode) {
  const NodeLayout layout = even_layout(5, 1, 2);
  EXPECT_EQ(order_of(Ring::unshuffled(layout)), (std::vector<Rank>{0, 1, 2, 3, 4}));
}

TEST(Ring, UnshuffledDealsRanksOutOverNodes) {
  EXPECT_EQ(order_of(Ring::unshuffled(even_layout(3, 2, 2))),
            (std::vector<Rank>{0, 2, 4, 1, 3, 5}));
  const NodeLayout round_robin = layout_of({0, 1, 2, 0, 1, 2}, 2);
  EXPECT_EQ(order_of(Ring::unshuffled(round_robin)), (std::vector<Rank>{0, 1, 2, 3, 4, 5}));
}

TEST(Ring, TheExampleOfThePapersFigure2) {
  const NodeLayout layout = even_layout(6, 1, 3);
  const std::vector<std::uint64_t> load{100, 100, 10, 10, 10, 10};
  EXPECT_EQ(most_received(layout, Ring::unshuffled(layout), load), 200u);
  EXPECT_EQ(most_received(layout, Ring::shuffled(layout, load), load), 110u);
}

/// The paper's Algorithm 2 with `tail` at the end and `j` counted, for one rank on each node: what
/// its busiest rank receives.
std::uint64_t most_received_by_algorithm_2(const std::vector<std::uint64_t>& load,
                                           std::size_t copies) {
  std::vector<std::size_t> index(load.size());
  std::iota(index.begin(), index.end(), std::size_t{0});
  std::stable_sort(index.begin(), index.end(),
                   [&](std::size_t a, std::size_t b) { return load[a] > load[b]; });
  std::vector<std::size_t> shuffle;
  std::size_t head = 0;
  std::size_t tail = load.size() - 1;
  while (shuffle.size() < load.size()) {
    shuffle.push_back(index[head++]);
    for (std::size_t j = 1; j < copies && head <= tail && shuffle.size() < load.size(); ++j)
      shuffle.push_back(index[tail--]);
  }
  std::vector<std::uint64_t> bytes(load.size());
  for (std::size_t place = 0; place < load.size(); ++place)
    for (std::size_t j = 1; j < copies; ++j)
      bytes[(place + j) % load.size()] += load[shuffle[place]];
  return *std::max_element(bytes.begin(), bytes.end());
}

TEST(Ring, ShuffledIsAtLeastAsGoodAsAlgorithm2AndUnshuffled) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const auto ranks = static_cast<Rank>(6 + below(random, 40));
    const auto copies = static_cast<std::uint32_t>(1 + below(random, 6));
    const NodeLayout layout = even_layout(ranks, 1, copies);
    std::vector<std::uint64_t> load(ranks);
    const bool few_heavy = seed % 2 == 0;
    for (std::uint64_t& bytes : load)
      bytes = !few_heavy ? below(random, 1000) : below(random, 10) == 0 ? 1000 : 100;
    const std::uint64_t most = most_received(layout, Ring::shuffled(layout, load), load);
    const std::uint64_t paper = most_received_by_algorithm_2(load, copies);
    ASSERT_LE(most, paper) << seed;
    ASSERT_LE(most, most_received(layout, Ring::unshuffled(layout), load)) << seed;
    better += most < paper;
  }
  EXPECT_GT(better, 80);
}

TEST(Ring, IsAlwaysAPermutation) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const NodeLayout layout = random_world(seed).layout;
    std::vector<std::uint64_t> load(layout.ranks());
    for (std::uint64_t& bytes : load) bytes = below(random, 4) * 1000;
    for (const Ring& ring : {Ring::unshuffled(layout), Ring::shuffled(layout, load)}) {
      std::vector<bool> seen(layout.ranks());
      ASSERT_EQ(ring.size(), layout.ranks());
      for (Rank place = 0; place < ring.size(); ++place) {
        ASSERT_FALSE(seen[ring.rank_at(place)]);
        seen[ring.rank_at(place)] = true;
        ASSERT_EQ(ring.place_of(ring.rank_at(place)), place);
      }
    }
  }
}

TEST(Ring, NextIsTheFirstRankOfANodeThatIsNotTaken) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const NodeLayout layout = random_world(seed).layout;
    if (layout.copies() < 2) continue;
    const Ring ring = Ring::unshuffled(layout);
    for (Rank rank = 0; rank < layout.ranks(); ++rank) {
      const std::vector<Node> taken{layout.node_of(rank)};
      std::size_t place = ring.place_of(rank);
      while (layout.node_of(ring.rank_at(place)) == taken[0]) place = (place + 1) % ring.size();
      ASSERT_EQ(ring.next(rank, taken), ring.rank_at(place));
    }
  }
}

TEST(Ring, EqualLoadsOnEvenNodesAreReceivedEvenly) {
  for (const auto& [nodes, each, copies] : std::vector<std::array<Rank, 3>>{
           {34, 12, 3}, {34, 12, 6}, {4, 4, 2}, {4, 4, 4}, {5, 3, 3}}) {
    const NodeLayout layout = even_layout(nodes, each, copies);
    const std::vector<std::uint64_t> load(layout.ranks(), 100);
    EXPECT_EQ(most_received(layout, Ring::unshuffled(layout), load), (copies - 1) * 100);
    EXPECT_EQ(most_received(layout, Ring::shuffled(layout, load), load), (copies - 1) * 100)
        << nodes << " x " << each << ", " << copies << " copies";
  }
}

TEST(Ring, ShufflingLowersTheMostThatIsReceived) {
  double shuffled = 0;
  double unshuffled = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const NodeLayout layout = even_layout(34, 12, 3);
    std::vector<std::uint64_t> load(layout.ranks());
    for (std::uint64_t& bytes : load) bytes = below(random, 4) == 0 ? 1000 : 100;
    const auto ring = Ring::shuffled(layout, load);
    const std::uint64_t most = most_received(layout, ring, load);
    EXPECT_LE(most, 2000u) << seed;
    shuffled += static_cast<double>(most);
    unshuffled += static_cast<double>(most_received(layout, Ring::unshuffled(layout), load));
  }
  EXPECT_LT(shuffled, 0.7 * unshuffled);
}

TEST(Ring, ShufflingHelpsOnUnevenNodesToo) {
  double sum = 0;
  int layouts = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const NodeLayout layout = random_world(seed).layout;
    if (layout.copies() < 3) continue;
    std::vector<std::uint64_t> load(layout.ranks());
    for (std::uint64_t& bytes : load) bytes = below(random, 8) == 0 ? 1000 : 100;
    const auto shuffled = most_received(layout, Ring::shuffled(layout, load), load);
    const auto unshuffled = most_received(layout, Ring::unshuffled(layout), load);
    ASSERT_LE(shuffled, unshuffled) << seed;
    sum += static_cast<double>(shuffled) / static_cast<double>(unshuffled);
    ++layouts;
  }
  EXPECT_LT(sum / layouts, 0.83);
}

TEST(Ring, ACrowdedNodeSpreadsOverTheOthers) {
  // Ten ranks on node 0, two on each of nodes 1 and 2: ten loads for four receivers.
  const NodeLayout layout = layout_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2}, 2);
  std::vector<std::uint64_t> load(14, 1);
  EXPECT_LE(most_received(layout, Ring::unshuffled(layout), load), 4u);
  EXPECT_LE(most_received(layout, Ring::shuffled(layout, load), load), 4u);
}

TEST(Ring, NextIsOfTheSameSet) {
  const auto layout = NodeLayout::make({0, 1, 2, 3, 4, 5}, 2, Level::erasure(2, 1));
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->sets(), 2u);
  const Ring ring = Ring::unshuffled(*layout);
  for (Rank rank = 0; rank < 6; ++rank) {
    const Node own = layout->node_of(rank);
    EXPECT_EQ(ring.next(rank, {&own, 1}), (rank + 2) % 6);
  }
}

}  // namespace
}  // namespace belay::dedup
