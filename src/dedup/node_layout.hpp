// SPDX-License-Identifier: Apache-2.0
// On which node each rank runs, and on how many nodes every block must be.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <cstdint>
#include <vector>

namespace belay::dedup {

/// A failure domain by number. Numbers need not be dense; ranks of equal number share a node.
using Node = std::uint32_t;

/// The same on all ranks: every plan is computed from it without talking.
class NodeLayout {
 public:
  /// `node_of_rank` has one number for each rank; `copies` is K of replicas:K, 1 for none.
  /// invalid_argument: there are fewer nodes than copies.
  static Result<NodeLayout> make(std::vector<Node> node_of_rank, std::uint32_t copies);

  Rank ranks() const { return static_cast<Rank>(node_of_rank_.size()); }
  Node node_of(Rank rank) const { return node_of_rank_[rank]; }
  std::uint32_t copies() const { return copies_; }

 private:
  NodeLayout(std::vector<Node> node_of_rank, std::uint32_t copies)
      : node_of_rank_(std::move(node_of_rank)), copies_(copies) {}

  std::vector<Node> node_of_rank_;
  std::uint32_t copies_;
};

inline constexpr std::uint32_t kMaxCopies = 255;

}  // namespace belay::dedup
