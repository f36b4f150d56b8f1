// SPDX-License-Identifier: Apache-2.0
// For one rank: which of its blocks it stores, which it leaves to others, and to whom it sends
// copies, so that in the end every block is on K nodes.
//
// The modes of `dedup` differ in what goes in, not in how it is planned:
//
//   mode                    blocks                    table            ring
//   none                    all, duplicates too       empty            unshuffled
//   local                   distinct                  empty            unshuffled
//   collective-unshuffled   distinct                  merged           unshuffled
//   collective              distinct                  merged           shuffled by send_bytes()
//
// Every rank brings only its unsafe blocks; some may bring none.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "dedup/frequent_blocks.hpp"
#include "dedup/node_layout.hpp"
#include "dedup/ring.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::dedup {

/// Blocks are known by their index in what the rank brought.
class ReplicationPlan {
 public:
  /// Copies for one other rank, in the order in which they are sent.
  struct Send {
    Rank receiver = 0;
    std::uint64_t bytes = 0;
    std::vector<std::uint32_t> blocks = {};
  };

  /// Blocks that this rank stores, ascending. It may be sent more by others, equal ones among them,
  /// and blocks that it stores or leaves out itself: one copy on this node is enough for all.
  const std::vector<std::uint32_t>& stored() const { return stored_; }
  /// Of those the ones that as many nodes store as must have them, where parity protects the rest.
  const std::vector<std::uint32_t>& natural() const { return natural_; }
  /// All others, ascending: their holders store them, and nothing of them is sent.
  const std::vector<std::uint32_t>& left_out() const { return left_out_; }
  /// In the order of the ring from this rank on: nobody is everybody's first.
  const std::vector<Send>& sends() const { return sends_; }

  /// The K ranks, on K nodes, that will hold a block: first those that store it from their own
  /// memory (for a stored block this rank is one of them), then those that are sent a copy. (Of a
  /// block that parity protects only its one storer means something.)
  std::span<const Rank> holders(std::uint32_t block) const {
    return {holders_.data() + std::size_t{set_of_[block]} * copies_, copies_};
  }
  /// Those of them that store it from their own memory.
  std::span<const Rank> storers(std::uint32_t block) const {
    return holders(block).first(storers_[set_of_[block]]);
  }

 private:
  friend class ReplicationPlanner;

  std::size_t copies_ = 1;
  std::vector<std::uint32_t> stored_;
  std::vector<std::uint32_t> natural_;
  std::vector<std::uint32_t> left_out_;
  std::vector<Send> sends_;
  std::vector<std::uint32_t> set_of_;  ///< by block: which set of holders
  std::vector<Rank> holders_;          ///< K for each set; set 0 is of blocks not in the table
  std::vector<std::uint8_t> storers_;  ///< by set: how many of the K
};

/// What one rank brings to a version, looked up in the merged table. References are kept: layout,
/// table and blocks must outlive it.
class ReplicationPlanner {
 public:
  /// The layout and the table must be the same on all ranks, or copies will be missing.
  /// corruption: the table counts on this rank for a block that it does not bring.
  static Result<ReplicationPlanner> make(const NodeLayout& layout, const FrequentBlocks& table,
                                         std::span<const Block> blocks, Rank rank);

  /// What this rank will send to all others together. It does not depend on the ring; gathered from
  /// all ranks it makes the shuffled one.
  std::uint64_t send_bytes() const;

  /// The ring must be the same on all ranks.
  ReplicationPlan plan(const Ring& ring) const;

  /// Where parity takes the place of copies: a block that ranks on K nodes of one set bring is
  /// stored by these K, any other by one rank only. Nothing is sent.
  ReplicationPlan plan_parity() const;

 private:
  ReplicationPlanner(const NodeLayout& layout, const FrequentBlocks& table,
                     std::span<const Block> blocks, Rank rank)
      : layout_(&layout), table_(&table), blocks_(blocks), rank_(rank) {}

  Result<void> check_designated() const;

  const NodeLayout* layout_;
  const FrequentBlocks* table_;
  std::span<const Block> blocks_;
  Rank rank_;
  std::vector<std::uint32_t> entry_of_;  ///< by block: its entry in the table, or none
};

}  // namespace belay::dedup
