// SPDX-License-Identifier: Apache-2.0
#include "store/retention.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace belay::store {

std::vector<VersionKey> versions_to_retire(const std::vector<KnownVersion>& known,
                                           const RetentionRule& rule) {
  std::vector<const KnownVersion*> newest_first;
  for (const KnownVersion& version : known)
    if (rule.earlier_runs_count || version.key.run == rule.run) newest_first.push_back(&version);
  std::sort(newest_first.begin(), newest_first.end(),
            [](const auto* a, const auto* b) { return a->key > b->key; });
  std::vector<VersionKey> retired;
  std::map<std::uint32_t, std::uint64_t> newer;  // existing ones, by strength
  for (const KnownVersion* version : newest_first) {
    if (version->dump || !version->here) continue;
    std::uint64_t as_strong = 0;
    for (auto each = newer.lower_bound(version->strength); each != newer.end(); ++each)
      as_strong += each->second;
    if (as_strong >= rule.keep) retired.push_back(version->key);
    if (version->exists) ++newer[version->strength];
  }
  return retired;
}

std::vector<SegmentId> segments_to_remove(const std::vector<SegmentId>& here,
                                          const std::vector<KnownVersion>& remaining,
                                          const RetentionRule& rule) {
  std::set<SegmentId> needed;
  VersionKey newest_unread;
  for (const KnownVersion& version : remaining) {
    if (version.segments)
      needed.insert(version.segments->begin(), version.segments->end());
    else
      newest_unread = std::max(newest_unread, version.key);
  }
  std::vector<SegmentId> removed;
  for (const SegmentId& segment : here) {
    const bool ours = rule.earlier_runs_count || segment.key.run == rule.run;
    if (ours && segment.key > newest_unread && !needed.contains(segment))
      removed.push_back(segment);
  }
  return removed;
}

}  // namespace belay::store
