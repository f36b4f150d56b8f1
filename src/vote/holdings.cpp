// SPDX-License-Identifier: Apache-2.0
#include "vote/holdings.hpp"

#include "base/mistakes.hpp"
#include "format/names.hpp"

#include <algorithm>
#include <iterator>

namespace belay::vote {
namespace {

std::vector<SegmentId> segments_of(const Manifest& manifest) {
  std::vector<SegmentId> segments;
  for (const SegmentRef& segment : manifest.segments) segments.push_back(segment.id);
  return segments;
}

/// A version that exists.
store::KnownVersion known_of(const Manifest& manifest, std::vector<SegmentId> segments) {
  return {.key = manifest.origin.key,
          .exists = true,
          .segments = std::move(segments),
          .strength = manifest.level.losses(),
          .dump = manifest.dump};
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Moves those that go; a lack of memory leaves both lists as they were.
template <class Goes>
void retire(std::vector<SegmentId>& here, std::vector<SegmentId>& retired, const Goes& goes) {
  std::vector<SegmentId> going;
  std::copy_if(here.begin(), here.end(), std::back_inserter(going), goes);
  append(retired, going);
  std::erase_if(here, goes);
}

}  // namespace

void Needs::complete(const std::vector<const Stripe*>& stripes) {
  for (const Stripe* const stripe : stripes) {
    const auto needed = [&](const StripeMember& member) {
      return !member.empty() && has({stripe->key, member.rank});
    };
    if (std::none_of(stripe->members.begin(), stripe->members.end(), needed)) continue;
    for (const StripeMember& member : stripe->members)
      if (!member.empty() && !planted(Mistake::delete_member))
        segments.insert({stripe->key, member.rank});
    for (std::uint32_t i = 0; i < stripe->level.shards; ++i)
      shards.insert(shard_id(stripe->key, stripe->number, i));
  }
}

VersionInfo info_of(const Manifest& manifest) {
  VersionInfo info{.version = manifest.origin.key.version,
                   .run = manifest.origin.key.run,
                   .parent = manifest.parent.version,
                   .time_ns = manifest.time_ns,
                   .level = name_of(manifest.level),
                   .regions = {},
                   .ledger = manifest.ledger};
  for (const RegionRecord& region : manifest.regions)
    info.regions.push_back({region.name, region.type, region.shape, region.bytes});
  return info;
}

Holdings::Holdings(const Claim& claim, std::uint64_t keep, Rank rank, std::uint32_t strongest)
    : rank_(rank),
      leads_node_(claim.leads_node),
      rule_{.keep = keep, .run = claim.run, .strongest = strongest} {
  Recovery recovery = recover(claim.own, claim.surveys, rank);
  next_number_ = recovery.next_number;
  known_ = std::move(recovery.known);
  if (claim.global)
    global_ = GlobalHoldings(*claim.global, std::move(recovery.global), claim.run, rank);
  trace_ = recovery.latest;
  settled_ = recovery.settled;
  segments_here_ = claim.own.segments;
  kept_ = {claim.own.kept_copies, claim.own.kept_manifests, claim.own.kept_shards};
  bundles_ = KeptBundles(claim.own.kept_bundles);
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

void Holdings::exists(const Manifest& manifest, VersionInfo info, Kept kept) {
  const VersionKey key = manifest.origin.key;
  std::vector<SegmentId> segments = segments_of(manifest);
  // What may lack memory comes first: all of it is done, or none.
  segments_here_.reserve(segments_here_.size() + 1);
  known_.reserve(known_.size() + 1);
  kept_.copies.reserve(kept_.copies.size() + kept.copies.size());
  kept_.manifests.reserve(kept_.manifests.size() + kept.manifests.size());
  kept_.shards.reserve(kept_.shards.size() + kept.shards.size());
  bundles_.reserve(kept.bundles.size());
  infos_.insert_or_assign(key, std::move(info));
  if (std::find(segments.begin(), segments.end(), SegmentId{key, rank_}) != segments.end())
    segments_here_.push_back({key, rank_});
  known_.insert(known_.begin(), known_of(manifest, std::move(segments)));
  append(kept_.copies, kept.copies);
  append(kept_.manifests, kept.manifests);
  append(kept_.shards, kept.shards);
  for (KeptBundle& bundle : kept.bundles) bundles_.add(std::move(bundle));
  made_version_ = true;
}

void Holdings::does_not_exist(VersionKey key) {
  if (auto* version = find(key)) version->exists = false;
  global_.does_not_exist(key);
}

void Holdings::restored(const Manifest& manifest) {
  // It may not have been readable when the store was opened.
  const VersionKey key = manifest.origin.key;
  if (auto* version = find(key)) {
    const bool here = version->here;
    *version = known_of(manifest, here ? segments_of(manifest) : std::vector<SegmentId>{});
    version->here = here;
  }
  infos_.insert_or_assign(key, info_of(manifest));
  rule_.earlier_runs_count = true;
}

void Holdings::discard(VersionKey key, const Kept& kept,
                       std::optional<std::vector<SegmentId>> segments) {
  const std::string manifest = format::manifest_name(key, rank_);
  if (hides_first_) retiring_.add(key, std::move(segments));
  retired_.manifests.push_back({key, rank_});
  retired_.segments.push_back({key, rank_});
  retired_.others.push_back(format::temporary_name(manifest));
  append(retired_.copies, kept.copies);
  append(retired_.shards, kept.shards);
  append(retired_.manifests, kept.manifests);
  for (const KeptBundle& bundle : kept.bundles) {
    retired_.bundles.push_back(bundle.id);
    retired_.others.push_back(format::temporary_name(format::bundle_name(bundle.id)));
  }
  for (const SegmentId& id : kept.manifests)
    retired_.others.push_back(format::temporary_name(format::manifest_name(id.key, id.rank)));
}

std::vector<VersionKey> Holdings::candidates() const {
  std::vector<VersionKey> keys;
  for (const store::KnownVersion& version : known_)
    if (!version.dump) keys.push_back(version.key);
  return keys;
}

std::optional<VersionKey> Holdings::newest() const {
  for (const store::KnownVersion& version : known_)
    if (version.exists && !version.dump) return version.key;
  return {};
}

std::optional<VersionKey> Holdings::find_dump(Version version) const {
  for (const store::KnownVersion& known : known_)
    if (known.dump && known.key.version == version) return known.key;
  return {};
}

std::optional<Version> Holdings::latest() const {
  if (const auto key = newest()) return key->version;
  return trace_;
}

std::vector<VersionInfo> Holdings::versions() const {
  std::vector<VersionInfo> infos;
  for (const store::KnownVersion& version : known_)
    if (const auto info = infos_.find(version.key); version.exists && info != infos_.end()) {
      infos.push_back(info->second);
      if (global_.has(version.key)) infos.back().level += "+global";
    }
  return infos;
}

Needs Holdings::needs() const {
  Needs needs = needs_of(known_);
  // What is older than all that exists would be retired by now, if it could be read.
  const VersionKey unread = bundles_.unread();
  const auto is_older = [&](const auto& version) { return version.exists && version.key < unread; };
  if (std::any_of(known_.begin(), known_.end(), is_older))
    needs.unread = std::max(needs.unread, unread);
  retiring_.add_to(needs);
  return needs;
}

std::vector<VersionKey> Holdings::retire_versions(VersionKey base, VersionKey pinned) {
  if (!made_version_) return {};
  std::vector<VersionKey> keys = versions_to_retire(known_, rule_);
  std::erase_if(keys, [&](const VersionKey& key) { return key == base || key == pinned; });
  for (const VersionKey& key : keys) {
    retired_.manifests.push_back({key, rank_});
    for (const SegmentId& id : kept_.manifests)
      if (id.key == key) retired_.manifests.push_back(id);
    std::erase_if(kept_.manifests, [&](const SegmentId& id) { return id.key == key; });
    if (hides_first_) retiring_.add(key, std::move(find(key)->segments));
    if (global_.has(key))
      *find(key) = {.key = key, .exists = true, .here = false};
    else
      forget(key);
  }
  return keys;
}

void Holdings::forget(VersionKey key) {
  infos_.erase(key);
  std::erase_if(known_, [&](const auto& version) { return version.key == key; });
}

void Holdings::drained(VersionKey key, const std::vector<SegmentId>& segments) {
  const auto* version = find(key);
  global_.drained({.key = key,
                   .exists = true,
                   .segments = segments,
                   .dump = version != nullptr && version->dump});
}

std::vector<VersionKey> Holdings::retire_global() {
  const auto keys = global_.retire_versions(rule_);
  for (const VersionKey& key : keys)
    if (const auto* version = find(key); version != nullptr && !version->here) forget(key);
  return keys;
}

void Holdings::release(const Needs& needs) {
  retiring_.forget_hidden(needs);
  if (!made_version_) return;
  const auto goes = [&](const SegmentId& id) { return may_go(id) && !needs.has(id); };
  retire(segments_here_, retired_.segments, goes);
  retire(kept_.copies, retired_.copies, goes);
  retire(kept_.shards, retired_.shards,
         [&](const SegmentId& id) { return may_go(id) && !needs.has_shard(id); });
  append(retired_.bundles, bundles_.take(needs, known_, rule_));
  retire_earlier_leftovers();
}

Retired Holdings::take_retired() {
  retiring_.take();
  return std::exchange(retired_, {});
}

bool Holdings::earlier_runs_matter() const {
  return !rule_.earlier_runs_count && std::any_of(known_.begin(), known_.end(), [&](const auto& v) {
    return v.key.run < rule_.run;
  });
}

void Holdings::retire_earlier_leftovers() {
  if (earlier_runs_matter()) return;
  append(retired_.others, earlier_leftovers_);
  earlier_leftovers_.clear();
}

void Holdings::give_back(Retired left) {
  retiring_.give_back(left);
  left.bundles = bundles_.give_back(std::move(left.bundles));
  retired_.add(left);
}

}  // namespace belay::vote
