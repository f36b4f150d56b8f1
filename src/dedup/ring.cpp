// SPDX-License-Identifier: Apache-2.0
#include "dedup/ring.hpp"

#include <algorithm>
#include <cassert>
#include <list>
#include <numeric>
#include <unordered_map>

namespace belay::dedup {
namespace {

/// Nodes as 0, 1, 2 ... in the order of their first ranks.
struct DenseNodes {
  std::vector<std::uint32_t> node_of;            ///< by rank
  std::vector<std::vector<Rank>> ranks_of;       ///< by node, ascending
  std::vector<std::uint64_t> index_in_its_node;  ///< by rank
};

DenseNodes number_nodes(const NodeLayout& layout) {
  DenseNodes nodes;
  std::unordered_map<Node, std::uint32_t> numbers;
  for (Rank rank = 0; rank < layout.ranks(); ++rank) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    const auto [found, is_new] = numbers.try_emplace(layout.node_of(rank), next);
    if (is_new) nodes.ranks_of.emplace_back();
    nodes.node_of.push_back(found->second);
    nodes.index_in_its_node.push_back(nodes.ranks_of[found->second].size());
    nodes.ranks_of[found->second].push_back(rank);
  }
  return nodes;
}

/// Rank i of node m, which has n ranks, stands at (i + (m + 1/2) / nodes) / n of the circle: nodes
/// of equal size take turns, and small nodes do not all stand at the same places.
std::vector<Rank> dealt_out(const DenseNodes& nodes) {
  const auto turn = [&](Rank rank) {
    return 2 * nodes.ranks_of.size() * nodes.index_in_its_node[rank] + 2 * nodes.node_of[rank] + 1;
  };
  const auto ranks_beside = [&](Rank rank) { return nodes.ranks_of[nodes.node_of[rank]].size(); };
  std::vector<Rank> order(nodes.node_of.size());
  std::iota(order.begin(), order.end(), Rank{0});
  std::sort(order.begin(), order.end(), [&](Rank a, Rank b) {
    const std::uint64_t place_a = turn(a) * ranks_beside(b);
    const std::uint64_t place_b = turn(b) * ranks_beside(a);
    return place_a != place_b ? place_a < place_b : a < b;
  });
  return order;
}

/// Ranks in piles, and from which pile the next one comes, over and over.
struct Deal {
  std::vector<std::list<Rank>> piles;
  std::vector<std::size_t> turns;
};

/// The paper's Algorithm 2: the one with the most to send, K-1 with the least, and so on. If more
/// than a K-th of all are heavy, some of them come as the last of the light ones.
Deal heads_and_tails(const std::vector<Rank>& by_load, std::uint32_t copies) {
  const std::size_t heads = (by_load.size() + copies - 1) / copies;
  const auto first_tail = by_load.begin() + static_cast<std::ptrdiff_t>(heads);
  Deal deal;
  deal.piles.emplace_back(by_load.begin(), first_tail);
  deal.piles.emplace_back(by_load.rbegin(), std::make_reverse_iterator(first_tail));
  deal.turns.assign(copies, 1);
  deal.turns.front() = 0;
  return deal;
}

/// From K-1 bands in turn, every second one backwards: any K-1 neighbours, which are those that one
/// rank receives from, have one of each band.
Deal bands(const std::vector<Rank>& by_load, std::uint32_t copies) {
  const std::size_t count = std::max(copies, 2u) - 1;
  Deal deal;
  for (std::size_t band = 0; band < count; ++band) {
    const auto at = [&](std::size_t border) {
      return by_load.begin() + static_cast<std::ptrdiff_t>(border * by_load.size() / count);
    };
    deal.piles.emplace_back(at(band), at(band + 1));
    if (band % 2 != 0) deal.piles.back().reverse();
    deal.turns.push_back(band);
  }
  return deal;
}

/// Deals ranks out, but none of a node that was among the last K-1: then the next of the pile, or
/// of another one.
class Dealer {
 public:
  Dealer(const DenseNodes& nodes, Deal deal, std::uint32_t copies)
      : nodes_(nodes), deal_(std::move(deal)), copies_(copies) {}

  std::vector<Rank> order() {
    std::size_t turn = 0;
    while (take(deal_.turns[turn % deal_.turns.size()])) ++turn;
    return with_rest();
  }

 private:
  bool may(Rank rank) const {
    const std::size_t recent = std::min<std::size_t>(copies_ - 1, taken_.size());
    return std::none_of(taken_.end() - static_cast<std::ptrdiff_t>(recent), taken_.end(),
                        [&](Rank other) { return nodes_.node_of[other] == nodes_.node_of[rank]; });
  }

  /// False if all that are left are of nodes just taken.
  bool take(std::size_t first_pile) {
    for (std::size_t i = 0; i < deal_.piles.size(); ++i) {
      std::list<Rank>& pile = deal_.piles[(first_pile + i) % deal_.piles.size()];
      const auto found =
          std::find_if(pile.begin(), pile.end(), [&](Rank rank) { return may(rank); });
      if (found == pile.end()) continue;
      taken_.push_back(*found);
      pile.erase(found);
      return true;
    }
    return false;
  }

  /// All ranks: those taken, each followed by its share of what is left of its node.
  std::vector<Rank> with_rest() const {
    std::vector<std::vector<Rank>> rest_of(nodes_.ranks_of.size());  // by node, as all here
    for (const std::list<Rank>& pile : deal_.piles)
      for (const Rank rank : pile) rest_of[nodes_.node_of[rank]].push_back(rank);
    std::vector<std::size_t> seen_of(nodes_.ranks_of.size());
    std::vector<std::size_t> placed_of(nodes_.ranks_of.size());
    std::vector<Rank> order;
    order.reserve(nodes_.node_of.size());
    for (const Rank rank : taken_) {
      const std::uint32_t node = nodes_.node_of[rank];
      const std::vector<Rank>& rest = rest_of[node];
      const std::size_t taken = nodes_.ranks_of[node].size() - rest.size();
      order.push_back(rank);
      ++seen_of[node];
      while (placed_of[node] < rest.size() * seen_of[node] / taken)
        order.push_back(rest[placed_of[node]++]);
    }
    return order;
  }

  const DenseNodes& nodes_;
  Deal deal_;
  std::uint32_t copies_;
  std::vector<Rank> taken_;
};

/// The most that a rank receives if all send equally much to each of K-1 other nodes.
std::uint64_t most_received(const NodeLayout& layout, const Ring& ring,
                            std::span<const std::uint64_t> send_bytes) {
  std::vector<std::uint64_t> received(layout.ranks());
  std::vector<Node> taken;
  for (Rank rank = 0; rank < layout.ranks(); ++rank) {
    taken.assign(1, layout.node_of(rank));
    while (taken.size() < layout.copies()) {
      const Rank receiver = ring.next(rank, taken);
      received[receiver] += send_bytes[rank];
      taken.push_back(layout.node_of(receiver));
    }
  }
  return *std::max_element(received.begin(), received.end());
}

}  // namespace

Ring::Ring(const NodeLayout& layout, std::vector<Rank> ranks)
    : layout_(&layout), ranks_(std::move(ranks)), places_(ranks_.size()) {
  for (std::size_t place = 0; place < ranks_.size(); ++place) places_[ranks_[place]] = place;
  next_nodes_.resize(ranks_.size());
  std::size_t next = 0;  // a run that passes the end goes on there
  for (std::size_t place = ranks_.size(); place-- > 0;) {
    const std::size_t after = (place + 1) % ranks_.size();
    if (layout.node_of(ranks_[place]) != layout.node_of(ranks_[after])) next = after;
    next_nodes_[place] = next;
  }
}

Ring Ring::unshuffled(const NodeLayout& layout) {
  return {layout, dealt_out(number_nodes(layout))};
}

Ring Ring::shuffled(const NodeLayout& layout, std::span<const std::uint64_t> send_bytes) {
  const DenseNodes nodes = number_nodes(layout);
  std::vector<Rank> by_load = dealt_out(nodes);
  std::stable_sort(by_load.begin(), by_load.end(),
                   [&](Rank a, Rank b) { return send_bytes[a] > send_bytes[b]; });
  Ring best = unshuffled(layout);
  std::uint64_t least = most_received(layout, best, send_bytes);
  for (const auto& shuffle : {heads_and_tails, bands}) {
    Dealer dealer(nodes, shuffle(by_load, layout.copies()), layout.copies());
    Ring ring(layout, dealer.order());
    const std::uint64_t most = most_received(layout, ring, send_bytes);
    if (most >= least) continue;
    best = std::move(ring);
    least = most;
  }
  return best;
}

Rank Ring::next(Rank from, std::span<const Node> taken) const {
  std::size_t place = places_[from];
  for (std::size_t steps = 0; steps <= ranks_.size(); ++steps) {
    place = next_nodes_[place];
    if (layout_->set_of(ranks_[place]) != layout_->set_of(from)) continue;
    const Node node = layout_->node_of(ranks_[place]);
    if (std::find(taken.begin(), taken.end(), node) == taken.end()) return ranks_[place];
  }
  assert(false && "a layout has at least as many nodes as copies");
  return from;
}

}  // namespace belay::dedup
