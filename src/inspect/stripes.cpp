// SPDX-License-Identifier: Apache-2.0
#include "inspect/stripes.hpp"

#include "inspect/read_only_tier.hpp"
#include "store/shard_file.hpp"

#include <algorithm>

namespace belay::inspect {
namespace {

struct FoundShard {
  std::size_t node = 0;
  format::ShardDescription description;  ///< without its checksums
};

using Found = std::map<std::pair<VersionKey, std::uint32_t>, std::vector<FoundShard>>;

Found read_shards(os::Files& files, const std::vector<NodeView>& nodes) {
  Found found;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const auto tier = make_read_only_tier(store::make_local_tier(files, nodes[node].directory));
    for (const FoundFile& file : nodes[node].files) {
      if (!file.regular || !file.parsed || file.parsed->temporary ||
          file.parsed->kind != format::NameKind::shard)
        continue;
      const SegmentId id{file.parsed->key, file.parsed->rank};
      const auto shard = store::ShardFile::open(*tier, id, {});
      if (!shard) continue;  // why is for `check` to say
      FoundShard& one =
          found[{id.key, stripe_of_shard(id)}].emplace_back(FoundShard{node, shard->description()});
      one.description.checksums = {};
    }
  }
  return found;
}

bool agree(const FoundShard& a, const FoundShard& b) {
  return a.description.origin == b.description.origin &&
         a.description.stripe == b.description.stripe;
}

/// One that says what most say.
const FoundShard& most_said(const std::vector<FoundShard>& shards) {
  const auto votes = [&](const FoundShard& one) {
    return std::count_if(shards.begin(), shards.end(),
                         [&](const FoundShard& other) { return agree(one, other); });
  };
  const FoundShard* best = &shards.front();
  if (static_cast<std::size_t>(votes(*best)) == shards.size()) return *best;
  for (const FoundShard& one : shards)
    if (votes(one) > votes(*best)) best = &one;
  return *best;
}

}  // namespace

std::optional<std::size_t> StripeView::node_of(std::uint32_t seat) const {
  for (const auto& node : shards[seat])
    if (node) return node;
  return {};
}

Stripes Stripes::read(os::Files& files, const std::vector<NodeView>& nodes) {
  Stripes stripes;
  for (const auto& [name, shards] : read_shards(files, nodes)) {
    const FoundShard& best = most_said(shards);
    const Stripe& stripe = best.description.stripe;
    auto layout = redundancy::layout_of(stripe);
    if (!layout) continue;
    StripeView view{stripe, best.description.origin, *std::move(layout), {}};
    view.shards.assign(stripe.seats(),
                       std::vector<std::optional<std::size_t>>(stripe.level.shards));
    for (const FoundShard& shard : shards) {
      const auto& [seat, index] = std::pair(shard.description.seat, shard.description.index);
      if (agree(shard, best) &&
          shard.description.parity_bytes == view.layout.bytes_of({seat, index}))
        view.shards[seat][index] = shard.node;
    }
    for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat)
      if (!stripe.members[seat].empty())
        stripes.members_[view.member(seat)] = {stripes.all_.size(), seat};
    stripes.numbers_[name] = stripes.all_.size();
    stripes.all_.push_back(std::move(view));
  }
  return stripes;
}

std::optional<Stripes::Seat> Stripes::of(const SegmentId& member) const {
  const auto found = members_.find(member);
  if (found == members_.end()) return {};
  return Seat{&all_[found->second.first], found->second.second};
}

const StripeView* Stripes::of_shard(const SegmentId& shard) const {
  const auto found = numbers_.find({shard.key, stripe_of_shard(shard)});
  return found == numbers_.end() ? nullptr : &all_[found->second];
}

void Stripes::complete(vote::Needs& needs) const {
  std::vector<const Stripe*> plain;
  for (const StripeView& view : all_) plain.push_back(&view.stripe);
  needs.complete(plain);
}

}  // namespace belay::inspect
