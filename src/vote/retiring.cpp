// SPDX-License-Identifier: Apache-2.0
#include "vote/retiring.hpp"

#include "base/mistakes.hpp"

#include <algorithm>
#include <set>

namespace belay::vote {

void Needs::add_retiring() {
  std::set<VersionKey> visible;
  for (const RetiringVersion& version : retiring)
    if (version.visible) visible.insert(version.key);
  std::erase_if(retiring, [&](const auto& version) { return !visible.contains(version.key); });
  if (planted(Mistake::remove_early)) return;
  for (const RetiringVersion& version : retiring) {
    if (version.segments)
      segments.insert(version.segments->begin(), version.segments->end());
    else
      unread = std::max(unread, version.key);
  }
}

void Retiring::take() {
  for (Entry& entry : versions_) entry.taken = true;
}

void Retiring::give_back(const Retired& left) {
  for (Entry& entry : versions_) {
    if (!entry.taken) continue;
    entry.taken = false;
    entry.version.visible =
        std::any_of(left.manifests.begin(), left.manifests.end(),
                    [&](const SegmentId& id) { return id.key == entry.version.key; });
  }
}

void Retiring::add_to(Needs& needs) const {
  for (const Entry& entry : versions_) needs.retiring.push_back(entry.version);
}

void Retiring::forget_hidden(const Needs& all) {
  std::erase_if(versions_, [&](const Entry& entry) {
    return !entry.version.visible &&
           std::none_of(all.retiring.begin(), all.retiring.end(),
                        [&](const auto& version) { return version.key == entry.version.key; });
  });
}

}  // namespace belay::vote
