// SPDX-License-Identifier: Apache-2.0
#include "dedup/node_layout.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::dedup {

Result<NodeLayout> NodeLayout::make(std::vector<Node> node_of_rank, std::uint32_t copies) {
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
  return NodeLayout(std::move(node_of_rank), copies);
}

}  // namespace belay::dedup
