// SPDX-License-Identifier: Apache-2.0
// The part of `belay show` about nodes: which has which files, and how safe that is.
#pragma once

#include "inspect/version_files.hpp"
#include "tools/belay/shell.hpp"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace belay::tool {

struct ShownNodes {
  std::vector<inspect::NodeShare> shares;  ///< by node
  inspect::Spread spread;
};

Result<ShownNodes> look_at_nodes(const inspect::StoreView& view,
                                 const inspect::VersionView& version);
/// The version's level, and whether its blocks are as safe as that says.
void say_safety(const Shell& shell, const inspect::VersionView& version, const ShownNodes& shown);
void say_nodes(const Shell& shell, const inspect::StoreView& view, const ShownNodes& shown);
/// "nodes" and "safety".
nlohmann::json nodes_json(const inspect::StoreView& view, const ShownNodes& shown);

}  // namespace belay::tool
