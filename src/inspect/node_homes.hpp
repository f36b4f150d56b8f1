// SPDX-License-Identifier: Apache-2.0
// On which node a rank is at home, and where a file that is missing belongs.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::inspect {

/// Segments of a rank lie on its own node. What a whole node has lost says no longer where it was;
/// then nodes that are numbered by `ranks_per_node`, or the only node without any segment, tell.
class NodeHomes {
 public:
  explicit NodeHomes(const StoreView& view);

  /// The node with the rank's segments of this run; unset if there are none.
  std::optional<std::size_t> node_of(Rank rank, Run run) const;
  /// The directory that the rank's segments of this run belong in; it may have to be made.
  /// not_found if nothing says which it is.
  Result<std::string> directory_of(Rank rank, Run run) const;

 private:
  std::optional<std::string> numbered(Rank rank) const;

  const StoreView& view_;
  std::map<Rank, std::map<Run, std::size_t>> homes_;  ///< by rank and run: the node
  std::set<std::pair<Rank, std::string>> keepers_;    ///< who has copies of a rank's segments
  std::vector<std::size_t> without_segments_;
};

}  // namespace belay::inspect
