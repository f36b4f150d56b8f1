// SPDX-License-Identifier: Apache-2.0
#include "vote/global_holdings.hpp"

#include "format/names.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace belay::vote {

GlobalHoldings::GlobalHoldings(const GlobalClaim& claim, std::vector<store::KnownVersion> known,
                               Run run, Rank rank)
    : rank_(rank),
      known_(std::move(known)),
      copies_(claim.own.kept_copies),
      bundles_(claim.own.kept_bundles),
      kept_manifests_(claim.own.kept_manifests),
      earlier_leftovers_(claim.own.temporaries) {
  for (const KeptBundle& bundle : bundles_.all())
    if (!bundle.readable) add_unread(bundle.id.key);
  if (!claim.leads_node) return;
  for (const Run earlier : claim.own.run_records)
    if (earlier < run) earlier_leftovers_.push_back(format::run_name(earlier));
}

/// Manifests are in a bundle that cannot be read: nobody knows what they count on.
void GlobalHoldings::add_unread(VersionKey key) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& version) { return version.key == key; });
  if (found == known_.end())
    known_.push_back({.key = key, .exists = false, .segments = std::nullopt});
  else
    found->segments.reset();
}

bool GlobalHoldings::has(VersionKey key) const {
  return std::any_of(known_.begin(), known_.end(), [&](const store::KnownVersion& version) {
    return version.exists && version.key == key;
  });
}

void GlobalHoldings::drained(store::KnownVersion version) {
  std::erase_if(known_, [&](const auto& other) { return other.key == version.key; });
  known_.insert(known_.begin(), std::move(version));
}

void GlobalHoldings::discard(VersionKey key, std::vector<SegmentId> segments,
                             const std::vector<KeptBundle>& bundles) {
  retiring_.add(key, std::move(segments));
  retired_.manifests.push_back({key, rank_});
  for (const KeptBundle& bundle : bundles)
    retired_.others.push_back(format::temporary_name(format::bundle_name(bundle.id)));
}

void GlobalHoldings::does_not_exist(VersionKey key) {
  for (store::KnownVersion& version : known_)
    if (version.key == key) version.exists = false;
}

std::vector<VersionKey> GlobalHoldings::retire_versions(const store::RetentionRule& rule) {
  const auto keys = store::versions_to_retire(known_, rule);
  for (const VersionKey& key : keys) {
    retired_.manifests.push_back({key, rank_});
    const auto is_of = [&](const SegmentId& id) { return id.key == key; };
    std::copy_if(kept_manifests_.begin(), kept_manifests_.end(),
                 std::back_inserter(retired_.manifests), is_of);
    std::erase_if(kept_manifests_, is_of);
    const auto is_it = [&](const auto& version) { return version.key == key; };
    retiring_.add(key, std::move(std::find_if(known_.begin(), known_.end(), is_it)->segments));
    std::erase_if(known_, is_it);
  }
  return keys;
}

Needs GlobalHoldings::needs() const {
  Needs needs = needs_of(known_);
  retiring_.add_to(needs);
  return needs;
}

void GlobalHoldings::give_back(Retired left) {
  retiring_.give_back(left);
  // A later version may count on the blocks of what stayed: whether it goes is asked again.
  for (const SegmentId& id : std::exchange(left.copies, {})) copies_.push_back(id);
  left.bundles = bundles_.give_back(std::move(left.bundles));
  retired_.add(left);
}

void GlobalHoldings::release(const Needs& needs, const store::RetentionRule& rule, bool earlier) {
  retiring_.forget_hidden(needs);
  const auto goes = [&](const SegmentId& id) {
    return (rule.earlier_runs_count || id.key.run == rule.run) && !needs.has(id);
  };
  std::copy_if(copies_.begin(), copies_.end(), std::back_inserter(retired_.copies), goes);
  std::erase_if(copies_, goes);
  const auto bundles = bundles_.take(needs, known_, rule);
  retired_.bundles.insert(retired_.bundles.end(), bundles.begin(), bundles.end());
  if (earlier) {
    retired_.others.insert(retired_.others.end(), earlier_leftovers_.begin(),
                           earlier_leftovers_.end());
    earlier_leftovers_.clear();
  }
}

Retired GlobalHoldings::take_retired() {
  retiring_.take();
  return std::exchange(retired_, {});
}

}  // namespace belay::vote
