// SPDX-License-Identifier: Apache-2.0
// On which node each rank runs, and on how many nodes of a set every block must be.
#pragma once

#include <belay/result.hpp>

#include "base/level.hpp"
#include "base/nouns.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::dedup {

/// A failure domain by number. Numbers need not be dense; ranks of equal number share a node.
using Node = std::uint32_t;

/// The same on all ranks: every plan is computed from it without talking.
class NodeLayout {
 public:
  /// `node_of_rank` has one number for each rank; `copies` is K of replicas:K, m + 1 of
  /// erasure:k+m, 1 for none. `level`: nodes form sets as it says. invalid_argument: there are
  /// fewer nodes than copies.
  static Result<NodeLayout> make(std::vector<Node> node_of_rank, std::uint32_t copies,
                                 const Level& level = {});

  Rank ranks() const { return static_cast<Rank>(node_of_rank_.size()); }
  Node node_of(Rank rank) const { return node_of_rank_[rank]; }
  std::uint32_t copies() const { return copies_; }
  /// Nodes are dealt out to sets in the order of their first ranks.
  std::uint32_t sets() const { return sets_; }
  std::uint32_t set_of(Rank rank) const { return set_of_rank_[rank]; }
  /// Whatever is lost, one of these ranks, on different nodes, is left.
  bool are_enough(std::span<const Rank> holders) const;

 private:
  NodeLayout(std::vector<Node> node_of_rank, std::uint32_t copies, const Level& level);

  std::vector<Node> node_of_rank_;
  std::vector<std::uint32_t> set_of_rank_;
  std::uint32_t sets_ = 1;
  std::uint32_t copies_;
};

inline constexpr std::uint32_t kMaxCopies = 255;

}  // namespace belay::dedup
