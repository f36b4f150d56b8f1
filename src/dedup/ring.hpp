// SPDX-License-Identifier: Apache-2.0
// The order in which ranks look for others to take copies of their blocks.
#pragma once

#include "base/nouns.hpp"
#include "dedup/node_layout.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::dedup {

/// A circle of all ranks. The layout must outlive it.
class Ring {
 public:
  /// Ranks in their own order, dealt out over the nodes: neighbours are on different nodes, and the
  /// ranks of one node are spread evenly. With one rank on each node that is 0, 1, 2 ... (If a
  /// node's ranks stood together, they would all send to the first rank of the next node.)
  static Ring unshuffled(const NodeLayout& layout);

  /// Heavy senders among light ones, so that no rank receives from several heavy ones: of the
  /// paper's Algorithm 2 (put right), an order in bands, which does better when many ranks are
  /// heavy, and the unshuffled ring the one whose busiest receiver gets least. K neighbours are on
  /// different nodes where that is possible. `send_bytes` is what each rank sends in all.
  static Ring shuffled(const NodeLayout& layout, std::span<const std::uint64_t> send_bytes);

  Rank size() const { return static_cast<Rank>(ranks_.size()); }
  Rank rank_at(std::size_t place) const { return ranks_[place]; }
  std::size_t place_of(Rank rank) const { return places_[rank]; }

  /// The first rank after `from` whose node is of the same set and not among `taken`.
  /// REQUIRES: the node of `from` is among them, and at least one of its set is not.
  Rank next(Rank from, std::span<const Node> taken) const;

 private:
  Ring(const NodeLayout& layout, std::vector<Rank> ranks);

  const NodeLayout* layout_;
  std::vector<Rank> ranks_;              ///< by place
  std::vector<std::size_t> places_;      ///< by rank
  std::vector<std::size_t> next_nodes_;  ///< by place: the next with another node, or place 0
};

}  // namespace belay::dedup
