// SPDX-License-Identifier: Apache-2.0
#include "session/roles.hpp"

#include "base/text.hpp"
#include "base/try.hpp"

#include <map>

namespace belay::session {

Result<Roles> assign_roles(std::span<const std::string> nodes, std::uint64_t heads_per_node) {
  std::map<std::string_view, std::vector<Rank>> processes;  // by node
  for (Rank process = 0; process < nodes.size(); ++process)
    processes[nodes[process]].push_back(process);
  std::vector<bool> is_head(nodes.size());
  for (const auto& [node, its] : processes) {
    if (its.size() < 2 * heads_per_node)
      return fail(Code::invalid_argument,
                  "background = head: node {} has {} ranks, of which {} would be heads and the "
                  "rest compute, at least one for each head; start more ranks on each node, or "
                  "lower heads_per_node",
                  in_quotes(node), its.size(), heads_per_node);
    for (std::size_t i = its.size() - heads_per_node; i < its.size(); ++i) is_head[its[i]] = true;
  }
  Roles roles;
  std::vector<Rank> number(nodes.size());  // of a process among the application, or the heads
  for (Rank process = 0; process < nodes.size(); ++process) {
    auto& alike = is_head[process] ? roles.heads : roles.application;
    number[process] = static_cast<Rank>(alike.size());
    alike.push_back(process);
  }
  roles.crews.resize(roles.heads.size());
  for (const auto& [node, its] : processes) {
    const std::size_t compute = its.size() - heads_per_node;
    for (std::size_t i = 0; i < compute; ++i) {
      const Rank head = its[compute + i * heads_per_node / compute];
      roles.crews[number[head]].push_back(number[its[i]]);
    }
  }
  return roles;
}

}  // namespace belay::session
