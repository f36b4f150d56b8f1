// SPDX-License-Identifier: Apache-2.0
#include "session/stripe_plan.hpp"

#include "base/try.hpp"
#include "format/segment.hpp"

#include <algorithm>
#include <map>

namespace belay::session {
namespace {

/// The ranks of each node, nodes in the order of their first ranks.
std::vector<std::vector<Rank>> ranks_by_node(const dedup::NodeLayout& nodes) {
  std::vector<std::vector<Rank>> ranks;
  std::map<dedup::Node, std::size_t> seen;
  for (Rank rank = 0; rank < nodes.ranks(); ++rank) {
    const auto [node, is_new] = seen.try_emplace(nodes.node_of(rank), ranks.size());
    if (is_new) ranks.emplace_back();
    ranks[node->second].push_back(rank);
  }
  return ranks;
}

StripeMember member_of(Rank rank, const Share& share) {
  if (share.file_bytes == 0) return {};
  return {rank, share.file_bytes,
          format::kSegmentHeaderBytes + share.payload_bytes - share.natural_bytes,
          share.natural_bytes};
}

}  // namespace

Result<std::vector<PlannedStripe>> plan_stripes(const dedup::NodeLayout& nodes, const Level& level,
                                                VersionKey key, std::span<const Share> shares) {
  const auto ranks = ranks_by_node(nodes);
  BELAY_ASSIGN(const auto sets, redundancy::form_sets(static_cast<std::uint32_t>(ranks.size()),
                                                      {level.members, level.shards}));
  std::size_t most = 0;
  for (const auto& on_node : ranks) most = std::max(most, on_node.size());
  std::vector<PlannedStripe> stripes;
  for (std::uint32_t set = 0; set < sets.count(); ++set)
    for (std::uint32_t turn = 0; turn < most; ++turn) {
      Stripe stripe{key, static_cast<std::uint32_t>(turn * sets.count() + set), level, {}};
      std::vector<Rank> keepers;
      for (std::uint32_t seat = 0; seat < sets.size(set); ++seat) {
        const auto& on_node = ranks[sets.node_at(set, seat)];
        keepers.push_back(on_node[turn % on_node.size()]);
        stripe.members.push_back(turn < on_node.size()
                                     ? member_of(on_node[turn], shares[on_node[turn]])
                                     : StripeMember{});
      }
      if (std::all_of(stripe.members.begin(), stripe.members.end(),
                      [](const StripeMember& member) { return member.empty(); }))
        continue;
      BELAY_ASSIGN(auto layout, redundancy::layout_of(stripe));
      stripes.push_back({std::move(stripe), std::move(layout), std::move(keepers)});
    }
  return stripes;
}

}  // namespace belay::session
