// SPDX-License-Identifier: Apache-2.0
#include "inspect/version_files.hpp"

#include "base/try.hpp"
#include "inspect/stripes.hpp"

namespace belay::inspect {

namespace {

void add_members(const StoreView& view, const SegmentId& shard, std::set<Rank>& ranks) {
  const StripeView* const stripe = view.stripes().of_shard(shard);
  if (stripe == nullptr) return;
  for (const StripeMember& member : stripe->stripe.members)
    if (!member.empty()) ranks.insert(member.rank);
}

}  // namespace

std::vector<NodeShare> node_shares(const StoreView& view, const VersionView& version) {
  std::set<SegmentId> counted_on;
  std::set<VersionKey> elsewhere;
  for (const PartView& part : version.parts) {
    if (!part.manifest) continue;
    for (const SegmentRef& segment : part.manifest->segments)
      if (segment.id.rank == kAnyRank)
        elsewhere.insert(segment.id.key);
      else
        counted_on.insert(segment.id);
  }
  vote::Needs needs;
  needs.segments = counted_on;
  for (const StripeView& stripe : view.stripes().all())
    if (elsewhere.contains(stripe.stripe.key))
      for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
        needs.segments.insert(stripe.member(seat));
  view.stripes().complete(needs);
  const auto sum_of = [&](NodeShare& share, const format::ParsedName& name) -> FileSum* {
    if (name.kind == format::NameKind::manifest)
      return name.key == version.key ? &share.manifests : nullptr;
    if (name.kind == format::NameKind::shard)
      return needs.has_shard({name.key, name.rank}) ? &share.shards : nullptr;
    if (!counted_on.contains({name.key, name.rank}) && !elsewhere.contains(name.key))
      return nullptr;
    if (name.kind == format::NameKind::segment) return &share.segments;
    return name.kind == format::NameKind::copy ? &share.copies : nullptr;
  };
  std::vector<NodeShare> shares;
  for (const NodeView& node : view.nodes()) {
    NodeShare& share = shares.emplace_back();
    for (const FoundFile& file : node.files) {
      if (!file.regular || !file.parsed || file.parsed->temporary) continue;
      FileSum* const sum = sum_of(share, *file.parsed);
      if (sum == nullptr) continue;
      ++sum->count;
      sum->bytes += file.bytes;
      if (file.parsed->kind != format::NameKind::shard)
        sum->ranks.insert(file.parsed->rank);
      else
        add_members(view, {file.parsed->key, file.parsed->rank}, sum->ranks);
    }
  }
  return shares;
}

Result<Spread> spread_of(const StoreView& view, const VersionView& version) {
  BlockGivers givers(view);
  BELAY_ASSIGN(const auto dependences, dependences_of(view, version, givers));
  const Manifest* manifest = version.any_manifest();
  const std::uint32_t losses = manifest == nullptr ? 0 : manifest->level.losses();
  Spread spread;
  for (const auto& [rank, set, blocks] : dependences) {
    const bool is_short = givers.least_losses(set) <= losses;
    const std::size_t nodes = givers.nodes_with_it(set);
    if (blocks == 0) {
      ++spread.manifests[nodes];
      spread.short_manifests += is_short ? 1 : 0;
    } else {
      spread.blocks[nodes] += blocks;
      spread.short_blocks += is_short ? blocks : 0;
    }
  }
  return spread;
}

}  // namespace belay::inspect
