// SPDX-License-Identifier: Apache-2.0
// Sets of nodes, and what may be lost of them: the one place that says which nodes are enough.
#pragma once

#include "base/level.hpp"

#include <cstdint>
#include <span>

namespace belay {

/// Nodes 0 to N - 1, dealt out in turn to floor(N / (k + m)) sets, or all in one where there is no
/// parity. Sizes differ by one at most; with parity they lie between k + m and 2 (k + m) - 1.
/// Neighbours, which often share a rack or a power supply, come into different sets as far as there
/// are several.
class NodeSets {
 public:
  NodeSets(std::uint32_t nodes, const Level& level);

  std::uint32_t count() const { return count_; }
  std::uint32_t size(std::uint32_t set) const { return (nodes_ - set + count_ - 1) / count_; }
  std::uint32_t set_of(std::uint32_t node) const { return node % count_; }
  /// A node's place in its set, 0 to size - 1.
  std::uint32_t place_of(std::uint32_t node) const { return node / count_; }
  std::uint32_t node_at(std::uint32_t set, std::uint32_t place) const {
    return place * count_ + set;
  }

 private:
  std::uint32_t nodes_;
  std::uint32_t count_;
};

/// The set of a node that is in none, of which nothing is promised.
inline constexpr std::uint32_t kNoSet = ~std::uint32_t{0};

/// Of nodes, given by the sets that they are in, the most that can be lost at once if each set
/// loses `losses` at most. What is on as many nodes may be lost; what is on one more may not, nor
/// what can be computed from the rest.
std::size_t most_lost(std::span<const std::uint32_t> sets, std::uint32_t losses);

}  // namespace belay
