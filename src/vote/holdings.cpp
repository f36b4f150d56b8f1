// SPDX-License-Identifier: Apache-2.0
#include "vote/holdings.hpp"

#include "format/names.hpp"

#include <algorithm>

namespace belay::vote {
namespace {

std::vector<SegmentId> segments_of(const Manifest& manifest) {
  std::vector<SegmentId> segments;
  for (const SegmentRef& segment : manifest.segments) segments.push_back(segment.id);
  return segments;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

VersionInfo info_of(const Manifest& manifest) {
  VersionInfo info{.version = manifest.origin.key.version,
                   .run = manifest.origin.key.run,
                   .parent = manifest.parent.version,
                   .time_ns = manifest.time_ns,
                   .regions = {},
                   .ledger = manifest.ledger};
  for (const RegionRecord& region : manifest.regions)
    info.regions.push_back({region.name, region.type, region.shape, region.bytes});
  return info;
}

Holdings::Holdings(const Claim& claim, std::uint64_t keep, Rank rank)
    : rank_(rank), leads_node_(claim.leads_node), rule_{.keep = keep, .run = claim.run} {
  Recovery recovery = recover(claim.own, claim.surveys);
  next_number_ = recovery.next_number;
  known_ = std::move(recovery.known);
  trace_ = recovery.latest;
  settled_ = recovery.settled;
  segments_here_ = claim.own.segments;
  for (const Manifest& manifest : claim.own.readable)
    infos_.emplace(manifest.origin.key, info_of(manifest));
  earlier_leftovers_ = claim.own.temporaries;
  if (leads_node_) {
    for (const Run run : claim.own.run_records)
      if (run < claim.run) earlier_leftovers_.push_back(format::run_name(run));
    append(earlier_leftovers_, claim.own.closed_marks);
  }
}

store::KnownVersion* Holdings::find(VersionKey key) {
  const auto found = std::find_if(known_.begin(), known_.end(),
                                  [&](const auto& version) { return version.key == key; });
  return found == known_.end() ? nullptr : &*found;
}

void Holdings::exists(const Manifest& manifest, VersionInfo info) {
  const VersionKey key = manifest.origin.key;
  std::vector<SegmentId> segments = segments_of(manifest);
  // What may lack memory comes first: all of it is done, or none.
  segments_here_.reserve(segments_here_.size() + 1);
  known_.reserve(known_.size() + 1);
  infos_.insert_or_assign(key, std::move(info));
  if (std::find(segments.begin(), segments.end(), SegmentId{key, rank_}) != segments.end())
    segments_here_.push_back({key, rank_});
  known_.insert(known_.begin(), {key, true, std::move(segments)});
  made_version_ = true;
}

void Holdings::does_not_exist(VersionKey key) {
  if (auto* version = find(key)) version->exists = false;
}

void Holdings::restored(const Manifest& manifest) {
  // It may not have been readable when the store was opened.
  const VersionKey key = manifest.origin.key;
  if (auto* version = find(key)) *version = {key, true, segments_of(manifest)};
  infos_.insert_or_assign(key, info_of(manifest));
  rule_.earlier_runs_count = true;
}

void Holdings::discard(VersionKey key) {
  const std::string manifest = format::manifest_name(key, rank_);
  retired_.manifests.push_back(key);
  retired_.segments.push_back({key, rank_});
  retired_.others.push_back(format::temporary_name(manifest));
}

std::vector<VersionKey> Holdings::candidates() const {
  std::vector<VersionKey> keys;
  for (const store::KnownVersion& version : known_) keys.push_back(version.key);
  return keys;
}

std::optional<VersionKey> Holdings::newest() const {
  for (const store::KnownVersion& version : known_)
    if (version.exists) return version.key;
  return {};
}

std::optional<Version> Holdings::latest() const {
  if (const auto key = newest()) return key->version;
  return trace_;
}

std::vector<VersionInfo> Holdings::versions() const {
  std::vector<VersionInfo> infos;
  for (const store::KnownVersion& version : known_)
    if (const auto info = infos_.find(version.key); version.exists && info != infos_.end())
      infos.push_back(info->second);
  return infos;
}

Retired Holdings::take_retired(VersionKey base) {
  if (made_version_) {
    for (const VersionKey& key : versions_to_retire(known_, rule_)) {
      if (key == base) continue;
      retired_.manifests.push_back(key);
      infos_.erase(key);
      std::erase_if(known_, [&](const auto& version) { return version.key == key; });
    }
    const auto removed = segments_to_remove(segments_here_, known_, rule_);
    append(retired_.segments, removed);
    std::erase_if(segments_here_, [&](const SegmentId& segment) {
      return std::find(removed.begin(), removed.end(), segment) != removed.end();
    });
    retire_earlier_leftovers();
  }
  return std::exchange(retired_, {});
}

void Holdings::retire_earlier_leftovers() {
  const bool earlier_runs_matter =
      !rule_.earlier_runs_count && std::any_of(known_.begin(), known_.end(), [&](const auto& v) {
        return v.key.run < rule_.run;
      });
  if (earlier_runs_matter) return;
  append(retired_.others, earlier_leftovers_);
  earlier_leftovers_.clear();
}

void Holdings::give_back(const Retired& left) {
  append(retired_.manifests, left.manifests);
  append(retired_.segments, left.segments);
  append(retired_.others, left.others);
}

}  // namespace belay::vote
