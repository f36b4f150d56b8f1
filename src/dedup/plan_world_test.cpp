// SPDX-License-Identifier: Apache-2.0
#include "dedup/plan_world_test.hpp"

#include <numeric>

namespace belay::dedup {
namespace {

NodeLayout random_layout(Random& random) {
  const auto ranks = static_cast<Rank>(1 + below(random, 64));
  const std::uint64_t nodes = 1 + below(random, std::min<std::uint64_t>(24, ranks));
  const bool crowded = below(random, 3) == 0;  // most ranks on one node
  std::vector<Node> node_of_rank;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const std::uint64_t node = rank < nodes                       ? rank
                               : crowded && below(random, 4) != 0 ? 0
                                                                  : below(random, nodes);
    node_of_rank.push_back(static_cast<Node>(node * 977));
  }
  std::shuffle(node_of_rank.begin(), node_of_rank.end(), random);
  const std::uint64_t copies = 1 + below(random, std::min<std::uint64_t>(6, nodes));
  return layout_of(std::move(node_of_rank), static_cast<std::uint32_t>(copies));
}

std::vector<Block> random_blocks(Random& random, Rank rank, std::uint64_t shared,
                                 std::uint32_t block_bytes) {
  std::vector<Block> blocks;
  if (below(random, 5) == 0) return blocks;
  const std::uint64_t count = below(random, 60);
  const std::uint64_t own_share = below(random, 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const bool own = below(random, 4) < own_share;
    const std::uint64_t content =
        own ? 1'000'000 + rank * 1000 + below(random, 100) : below(random, shared);
    // A few contents come in several lengths: equal fingerprints that are different blocks.
    const std::uint32_t length =
        content % 7 == 0 ? 1 + static_cast<std::uint32_t>(below(random, 3)) : block_bytes;
    blocks.push_back(block_of(content, length));
  }
  return blocks;
}

FrequentBlocks through_bytes(const FrequentBlocks& table, const World& world) {
  auto decoded = FrequentBlocks::decode(table.encode(), world.layout, world.capacity);
  EXPECT_TRUE(decoded) << decoded.error().message();
  return decoded ? *std::move(decoded) : FrequentBlocks();
}

std::vector<BlockSet> kept_by_rank(const Outcome& outcome) {
  std::vector<BlockSet> kept(outcome.plans.size());
  for (Rank rank = 0; rank < kept.size(); ++rank) {
    const std::vector<Block>& blocks = outcome.world.blocks[rank];
    const ReplicationPlan& plan = outcome.plans[rank];
    for (const std::uint32_t block : plan.stored()) kept[rank].insert(blocks[block]);
    for (const auto& send : plan.sends())
      for (const std::uint32_t block : send.blocks) kept[send.receiver].insert(blocks[block]);
  }
  return kept;
}

}  // namespace

World random_world(std::uint64_t seed) {
  Random random(seed);
  World world{.layout = random_layout(random), .blocks = {}};
  world.max_block_bytes = 16 + static_cast<std::uint32_t>(below(random, 50));
  const std::uint64_t shared = 1 + below(random, 80);
  for (Rank rank = 0; rank < world.layout.ranks(); ++rank)
    world.blocks.push_back(random_blocks(random, rank, shared, world.max_block_bytes));
  if (below(random, 2) == 0) world.capacity = below(random, 40);
  return world;
}

FrequentBlocks merged_table(const World& world, Tree tree, std::uint64_t seed) {
  Random random(seed);
  std::vector<FrequentBlocks> tables;
  for (Rank rank = 0; rank < world.layout.ranks(); ++rank)
    tables.push_back(FrequentBlocks::from_local(world.blocks[rank], rank, world.capacity));
  while (tables.size() > 1) {
    const std::size_t first = tree == Tree::random ? below(random, tables.size() - 1) : 0;
    tables[first] = through_bytes(
        FrequentBlocks::merge(tables[first], tables[first + 1], world.layout, world.capacity),
        world);
    tables.erase(tables.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    // What was merged waits until all others were.
    if (tree == Tree::balanced) std::rotate(tables.begin(), tables.begin() + 1, tables.end());
  }
  return tables.front();
}

Outcome::Outcome(World brought, Mode mode, Tree tree, bool drop_unshared)
    : world(std::move(brought)) {
  const bool collective = mode == Mode::collective || mode == Mode::collective_unshuffled;
  if (mode != Mode::none)
    for (std::vector<Block>& blocks : world.blocks) blocks = distinct(blocks);
  if (collective) table = merged_table(world, tree);
  if (drop_unshared) table.drop_unshared();
  std::vector<ReplicationPlanner> planners;
  for (Rank rank = 0; rank < world.layout.ranks(); ++rank) {
    auto planner = ReplicationPlanner::make(world.layout, table, world.blocks[rank], rank);
    EXPECT_TRUE(planner) << planner.error().message();
    planners.push_back(*std::move(planner));
    send_bytes.push_back(planners.back().send_bytes());
  }
  ring.push_back(mode == Mode::collective ? Ring::shuffled(world.layout, send_bytes)
                                          : Ring::unshuffled(world.layout));
  for (const ReplicationPlanner& planner : planners) plans.push_back(planner.plan(ring.front()));
}

std::uint64_t Outcome::stored_bytes(Rank rank) const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t block : plans[rank].stored()) bytes += world.blocks[rank][block].length;
  return bytes;
}

std::uint64_t Outcome::sent_bytes(Rank rank) const {
  std::uint64_t bytes = 0;
  for (const auto& send : plans[rank].sends()) bytes += send.bytes;
  return bytes;
}

std::vector<std::uint64_t> Outcome::received_bytes(Rank rank) const {
  std::vector<std::uint64_t> bytes(plans.size());
  for (Rank sender = 0; sender < plans.size(); ++sender)
    for (const auto& send : plans[sender].sends())
      if (send.receiver == rank) bytes[sender] += send.bytes;
  return bytes;
}

void expect_every_block_is_safe(const Outcome& outcome) {
  const std::vector<BlockSet> kept = kept_by_rank(outcome);
  for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
    const std::vector<Block>& blocks = outcome.world.blocks[rank];
    for (std::uint32_t block = 0; block < blocks.size(); ++block) {
      std::set<Node> nodes;
      for (const Rank holder : outcome.plans[rank].holders(block)) {
        nodes.insert(outcome.world.layout.node_of(holder));
        ASSERT_TRUE(kept[holder].contains(blocks[block]))
            << "rank " << rank << " counts on rank " << holder << " for its block " << block;
      }
      ASSERT_EQ(nodes.size(), outcome.world.layout.copies()) << "rank " << rank;
    }
  }
}

void expect_plans_are_whole(const Outcome& outcome) {
  for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
    const ReplicationPlan& plan = outcome.plans[rank];
    const std::vector<Block>& blocks = outcome.world.blocks[rank];
    std::vector<std::uint32_t> all;
    std::set_union(plan.stored().begin(), plan.stored().end(), plan.left_out().begin(),
                   plan.left_out().end(), std::back_inserter(all));
    std::vector<std::uint32_t> expected(blocks.size());
    std::iota(expected.begin(), expected.end(), 0u);
    ASSERT_EQ(all, expected);
    ASSERT_EQ(plan.stored().size() + plan.left_out().size(), blocks.size());
    ASSERT_EQ(outcome.sent_bytes(rank), outcome.send_bytes[rank]);
    std::set<Rank> receivers;
    for (const auto& send : plan.sends()) {
      ASSERT_NE(send.receiver, rank);
      ASSERT_TRUE(receivers.insert(send.receiver).second);
      std::uint64_t bytes = 0;
      for (const std::uint32_t block : send.blocks) bytes += blocks[block].length;
      ASSERT_EQ(send.bytes, bytes);
    }
  }
}

void expect_streams_are_exact(const Outcome& outcome, std::uint64_t window_bytes) {
  const auto rounds = Rounds::make(window_bytes, outcome.world.max_block_bytes);
  ASSERT_TRUE(rounds) << rounds.error().message();
  for (Rank rank = 0; rank < outcome.plans.size(); ++rank) {
    const Stream stream = plan_stream(outcome.received_bytes(rank), outcome.ring.front(), rank);
    std::map<std::uint64_t, std::uint64_t> filled;  // from, to
    for (Rank sender = 0; sender < outcome.plans.size(); ++sender) {
      for (const auto& send : outcome.plans[sender].sends()) {
        if (send.receiver != rank) continue;
        std::vector<std::uint32_t> lengths;
        for (const std::uint32_t block : send.blocks)
          lengths.push_back(outcome.world.blocks[sender][block].length);
        std::size_t next_block = 0;
        for (const Put& put : plan_puts(stream.offsets[sender], lengths, *rounds)) {
          ASSERT_EQ(put.first_block, next_block);
          next_block += put.blocks;
          ASSERT_LT(put.round, rounds->count(stream.bytes));
          ASSERT_LE(put.offset + put.bytes, rounds->window_bytes(stream.bytes));
          const std::uint64_t from = put.round * rounds->stride() + put.offset;
          ASSERT_TRUE(filled.emplace(from, from + put.bytes).second) << "two puts at one place";
        }
        ASSERT_EQ(next_block, lengths.size());
      }
    }
    std::uint64_t end = 0;
    for (const auto& [from, to] : filled) {
      ASSERT_EQ(from, end) << "gap or overlap in what rank " << rank << " receives";
      end = to;
    }
    ASSERT_EQ(end, stream.bytes);
  }
}

}  // namespace belay::dedup
