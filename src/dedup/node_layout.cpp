// SPDX-License-Identifier: Apache-2.0
#include "dedup/node_layout.hpp"

#include "base/node_sets.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <unordered_map>

namespace belay::dedup {

NodeLayout::NodeLayout(std::vector<Node> node_of_rank, std::uint32_t copies, const Level& level)
    : node_of_rank_(std::move(node_of_rank)), copies_(copies) {
  std::unordered_map<Node, std::uint32_t> numbers;
  for (const Node node : node_of_rank_)
    numbers.try_emplace(node, static_cast<std::uint32_t>(numbers.size()));
  const NodeSets sets(static_cast<std::uint32_t>(numbers.size()), level);
  sets_ = sets.count();
  for (const Node node : node_of_rank_) set_of_rank_.push_back(sets.set_of(numbers.at(node)));
}

bool NodeLayout::are_enough(std::span<const Rank> holders) const {
  std::vector<std::uint32_t> sets;
  for (const Rank holder : holders) sets.push_back(set_of(holder));
  return most_lost(sets, copies_ - 1) < holders.size();
}

Result<NodeLayout> NodeLayout::make(std::vector<Node> node_of_rank, std::uint32_t copies,
                                    const Level& level) {
  if (copies < 1 || copies > kMaxCopies)
    return fail(Code::invalid_argument, "replicas: {} copies of each block: choose 1 to {}", copies,
                kMaxCopies);
  std::vector<Node> nodes = node_of_rank;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() < copies)
    return fail(Code::invalid_argument,
                "redundancy = replicas:{0} needs {0} nodes, but the {1} ranks run on {2} "
                "(use more nodes or fewer copies; BELAY_NODE or BELAY_RANKS_PER_NODE tell nodes "
                "apart that share a host)",
                copies, node_of_rank.size(), nodes.size());
  return NodeLayout(std::move(node_of_rank), copies, level);
}

}  // namespace belay::dedup
