// SPDX-License-Identifier: Apache-2.0
#include "vote/kept_bundles.hpp"

#include <algorithm>
#include <utility>

namespace belay::vote {

VersionKey KeptBundles::unread() const {
  VersionKey newest;
  for (const KeptBundle& bundle : bundles_)
    if (!bundle.readable) newest = std::max(newest, bundle.id.key);
  return newest;
}

std::vector<SegmentId> KeptBundles::take(const Needs& needs,
                                         const std::vector<store::KnownVersion>& known,
                                         const store::RetentionRule& rule) {
  const auto goes = [&](const KeptBundle& bundle) {
    const auto is_its = [&](const store::KnownVersion& version) {
      return version.key == bundle.id.key;
    };
    const bool may = rule.earlier_runs_count || bundle.id.key.run == rule.run;
    return may && bundle.readable && !(bundle.id.key <= needs.unread) &&
           std::none_of(known.begin(), known.end(), is_its) &&
           std::none_of(bundle.segments.begin(), bundle.segments.end(),
                        [&](const SegmentId& id) { return needs.has(id); });
  };
  std::vector<SegmentId> going;
  for (const KeptBundle& bundle : bundles_) {
    if (!goes(bundle)) continue;
    going.push_back(bundle.id);
    retiring_.push_back(bundle);
  }
  std::erase_if(bundles_, goes);
  return going;
}

std::vector<SegmentId> KeptBundles::give_back(std::vector<SegmentId> stayed) {
  // A later version may count on the blocks of what stayed: whether it goes is asked again.
  for (KeptBundle& bundle : std::exchange(retiring_, {}))
    if (std::erase(stayed, bundle.id) > 0) bundles_.push_back(std::move(bundle));
  return stayed;
}

}  // namespace belay::vote
