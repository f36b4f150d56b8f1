// SPDX-License-Identifier: Apache-2.0
// Who computes, and who does background work for whom.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::session {

/// With `background = head` the last processes of each node are heads. The others are the
/// application, and are numbered anew, in the same order.
struct Roles {
  std::vector<Rank> application;         ///< by the application's rank: the process
  std::vector<Rank> heads;               ///< by head: the process
  std::vector<std::vector<Rank>> crews;  ///< by head: the application's ranks that it works for
};

/// `nodes` has the node of each process. invalid_argument: a node has too few of them.
Result<Roles> assign_roles(std::span<const std::string> nodes, std::uint64_t heads_per_node);

}  // namespace belay::session
