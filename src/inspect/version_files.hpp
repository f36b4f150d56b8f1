// SPDX-License-Identifier: Apache-2.0
// Which node has which files of a version, and on how many nodes its blocks are.
#pragma once

#include <belay/result.hpp>

#include "inspect/block_givers.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace belay::inspect {

struct FileSum {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::set<Rank> ranks = {};  ///< whose files these are
};

/// The files in a node's directory that a version counts on, be they of this version or of an older
/// one.
struct NodeShare {
  FileSum manifests;
  FileSum segments;
  FileSum copies;
  FileSum shards;  ///< of stripes with a member that is counted on; `ranks` are the members'
};

/// By node.
std::vector<NodeShare> node_shares(const StoreView& view, const VersionView& version);

/// On how many nodes the blocks and manifests of a version are, by their number of nodes.
struct Spread {
  std::map<std::size_t, std::uint64_t> blocks;
  std::map<std::size_t, std::uint64_t> manifests;
  /// Those that fewer losses can cost than the version's level says.
  std::uint64_t short_blocks = 0;
  std::uint64_t short_manifests = 0;
};

/// As names and indexes tell. not_found as in dependences_of().
Result<Spread> spread_of(const StoreView& view, const VersionView& version);

}  // namespace belay::inspect
