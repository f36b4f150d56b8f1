// SPDX-License-Identifier: Apache-2.0
// For tests: all ranks of a job planned in one process, so that what they promise each other can be
// compared with what they do.
#pragma once

#include "dedup/exchange_plan.hpp"
#include "dedup/frequent_blocks.hpp"
#include "dedup/replication_plan.hpp"
#include "dedup/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace belay::dedup {

using Random = std::mt19937_64;

inline std::uint64_t below(Random& random, std::uint64_t bound) { return random() % bound; }

/// Uniform, as fingerprints are (SplitMix64).
inline std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
  return number ^ (number >> 31);
}

inline Block block_of(std::uint64_t content, std::uint32_t length) {
  return {{mixed(2 * content), mixed(2 * content + 1)}, length};
}

using BlockSet = std::set<Block, Before>;

enum class Mode { none, local, collective, collective_unshuffled };
enum class Tree { balanced, chain, random };

/// What the ranks of a job bring to one version.
struct World {
  NodeLayout layout;
  std::size_t capacity = 1 << 17;
  std::vector<std::vector<Block>> blocks;  ///< by rank
  std::uint32_t max_block_bytes = 0;
};

inline NodeLayout layout_of(std::vector<Node> node_of_rank, std::uint32_t copies) {
  return *NodeLayout::make(std::move(node_of_rank), copies);
}

/// `nodes` times `ranks_each`, in the order that mpirun gives: node by node.
inline NodeLayout even_layout(Rank nodes, Rank ranks_each, std::uint32_t copies) {
  std::vector<Node> node_of_rank;
  for (Rank rank = 0; rank < nodes * ranks_each; ++rank) node_of_rank.push_back(rank / ranks_each);
  return layout_of(std::move(node_of_rank), copies);
}

/// 1 to 64 ranks on 1 to 24 nodes, 1 to 6 copies; ranks with nothing, shared and own blocks, short
/// blocks, equal fingerprints of different lengths, tables that are too small.
World random_world(std::uint64_t seed);

inline std::vector<Block> distinct(const std::vector<Block>& blocks) {
  const BlockSet set(blocks.begin(), blocks.end());
  std::vector<Block> unique(set.begin(), set.end());
  Random random(unique.size());
  std::shuffle(unique.begin(), unique.end(), random);
  return unique;
}

/// The table of all ranks, merged up a tree of this shape. Each step passes through bytes.
FrequentBlocks merged_table(const World& world, Tree tree, std::uint64_t seed = 1);

/// What all ranks come to. Members refer to each other: it stays where it is.
struct Outcome {
  Outcome(World brought, Mode mode, Tree tree = Tree::balanced, bool drop_unshared = false);
  Outcome(const Outcome&) = delete;

  std::uint64_t stored_bytes(Rank rank) const;
  std::uint64_t sent_bytes(Rank rank) const;
  /// By sender.
  std::vector<std::uint64_t> received_bytes(Rank rank) const;

  World world;
  FrequentBlocks table;
  std::vector<std::uint64_t> send_bytes;
  std::vector<Ring> ring;  ///< one
  std::vector<ReplicationPlan> plans;
};

/// Every block of every rank is on K nodes, and the rank that brought it knows where.
void expect_every_block_is_safe(const Outcome& outcome);
/// Every rank's plan agrees with itself.
void expect_plans_are_whole(const Outcome& outcome);
/// Streams are filled exactly, and their rounds stay within the window.
void expect_streams_are_exact(const Outcome& outcome, std::uint64_t window_bytes);

}  // namespace belay::dedup
