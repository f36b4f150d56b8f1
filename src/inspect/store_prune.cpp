// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_prune.hpp"

#include "base/try.hpp"
#include "inspect/stripes.hpp"
#include "store/bundle.hpp"
#include "store/places.hpp"
#include "store/retention.hpp"
#include "vote/publish.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace belay::inspect {
namespace {

/// All ranks at once: a segment goes only if no manifest of any rank counts on it.
store::KnownVersion known_of(const VersionView& version) {
  store::KnownVersion known{version.key, version.state == VersionState::whole};
  for (const PartView& part : version.parts) {
    if (!part.manifest) {
      known.segments.reset();
      return known;
    }
    known.strength = part.manifest->level.losses();
    known.dump = part.manifest->dump;
    for (const SegmentRef& segment : part.manifest->segments) known.segments->push_back(segment.id);
  }
  return known;
}

std::vector<PlannedFile> files_of(const StoreView& view, format::NameKind kind) {
  std::vector<PlannedFile> found;
  for (std::size_t node = 0; node < view.nodes().size(); ++node)
    for (const FoundFile& file : view.nodes()[node].files)
      if (file.regular && file.parsed && !file.parsed->temporary && file.parsed->kind == kind)
        found.push_back({node, file.name, *file.parsed, file.bytes});
  return found;
}

/// What vote::remove_retired() takes: the files of one rank in one directory.
using Shares = std::map<std::pair<std::size_t, Rank>, vote::Retired>;

Result<void> remove_shares(const StoreView& view, const Shares& shares, Log& log) {
  for (const auto& [place, retired] : shares) {
    const std::size_t node = place.first;
    const auto tier = store::open_place(view.files(), view.nodes()[node].directory);
    if (!vote::remove_retired(*tier, retired, log).empty())
      return fail(Code::io, "not all files could be removed from {}; nothing is lost, try again",
                  tier->place());
    BELAY_TRY(tier->sync_names());
  }
  return {};
}

/// Checkpoints and dumps each by themselves, newest first.
std::vector<VersionKey> versions_to_prune(const std::vector<store::KnownVersion>& known,
                                          const store::RetentionRule& rule) {
  std::vector<VersionKey> keys = store::versions_to_retire(known, rule);
  std::vector<store::KnownVersion> dumps;
  std::copy_if(known.begin(), known.end(), std::back_inserter(dumps),
               [](const auto& version) { return version.dump; });
  for (store::KnownVersion& version : dumps) {
    version.dump = false;
    version.strength = 0;
  }
  const auto old = store::versions_to_retire(dumps, rule);
  keys.insert(keys.end(), old.begin(), old.end());
  std::sort(keys.begin(), keys.end(), std::greater<>());
  return keys;
}

}  // namespace

std::uint64_t PrunePlan::bytes() const {
  std::uint64_t sum = 0;
  for (const auto* files : {&manifests, &segments, &copies, &shards, &bundles})
    for (const PlannedFile& file : *files) sum += file.bytes;
  return sum;
}

Result<PrunePlan> plan_prune(const StoreView& view, std::uint64_t keep) {
  if (view.mixed())
    return fail(Code::corruption,
                "{} is a mixture of stores; `belay check` names the files, put them where they "
                "belong",
                view.stores().front());
  const store::RetentionRule rule{.keep = keep, .earlier_runs_count = true};
  std::vector<store::KnownVersion> known;
  for (const VersionView& version : view.versions()) known.push_back(known_of(version));
  PrunePlan plan;
  plan.versions = versions_to_prune(known, rule);
  const std::set<VersionKey> retired(plan.versions.begin(), plan.versions.end());
  std::erase_if(known, [&](const auto& version) { return retired.contains(version.key); });
  for (PlannedFile& file : files_of(view, format::NameKind::manifest))
    if (retired.contains(file.parsed.key)) plan.manifests.push_back(std::move(file));
  if (retired.empty()) return plan;

  const auto segments = files_of(view, format::NameKind::segment);
  const auto copies = files_of(view, format::NameKind::copy);
  std::vector<SegmentId> here;
  for (const auto* files : {&segments, &copies})
    for (const PlannedFile& file : *files) here.push_back({file.parsed.key, file.parsed.rank});
  const auto removed = store::segments_to_remove(here, known, rule);
  const std::set<SegmentId> unneeded(removed.begin(), removed.end());
  vote::Needs needs = vote::needs_of(known);
  view.stripes().complete(needs);
  // Leftovers of versions newer than the kept ones may be the only trace of their numbers.
  const auto goes = [&](const PlannedFile& file) {
    return file.parsed.key <= plan.versions.front() &&
           unneeded.contains({file.parsed.key, file.parsed.rank}) &&
           !needs.has({file.parsed.key, file.parsed.rank});
  };
  const auto shard_goes = [&](const PlannedFile& file) {
    const SegmentId id{file.parsed.key, file.parsed.rank};
    const auto same_version = needs.segments.lower_bound({id.key, 0});
    const bool any_needed = same_version != needs.segments.end() && same_version->key == id.key;
    // Of a stripe without any description nobody knows the members.
    return id.key <= plan.versions.front() && !needs.has_shard(id) &&
           !(any_needed && view.stripes().of_shard(id) == nullptr);
  };
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(plan.segments), goes);
  std::copy_if(copies.begin(), copies.end(), std::back_inserter(plan.copies), goes);
  const auto bundle_goes = [&](const PlannedFile& file) {
    const SegmentId id{file.parsed.key, file.parsed.rank};
    const auto bundle = store::Bundle::open(view.tier(file.node), id);
    const bool retained = std::any_of(known.begin(), known.end(),
                                      [&](const auto& version) { return version.key == id.key; });
    if (!bundle || retained || plan.versions.front() < id.key) return false;
    const auto& inside = (*bundle)->rider().segments;
    return std::none_of(inside.begin(), inside.end(),
                        [&](const auto& segment) { return needs.has(segment.id); });
  };
  const auto bundles = files_of(view, format::NameKind::bundle);
  std::copy_if(bundles.begin(), bundles.end(), std::back_inserter(plan.bundles), bundle_goes);
  std::erase_if(plan.copies, [](const PlannedFile& file) { return file.bytes == 0; });
  const auto shards = files_of(view, format::NameKind::shard);
  std::copy_if(shards.begin(), shards.end(), std::back_inserter(plan.shards), shard_goes);
  return plan;
}

Result<void> prune(const StoreView& view, const PrunePlan& plan, Log& log) {
  Shares manifests;
  Shares segments;
  for (const PlannedFile& file : plan.manifests)
    manifests[{file.node, file.parsed.rank}].manifests.push_back(
        {file.parsed.key, file.parsed.rank});
  for (const PlannedFile& file : plan.segments)
    segments[{file.node, file.parsed.rank}].segments.push_back({file.parsed.key, file.parsed.rank});
  for (const PlannedFile& file : plan.copies)
    segments[{file.node, file.parsed.rank}].others.push_back(file.name);
  for (const PlannedFile& file : plan.shards)
    segments[{file.node, 0}].shards.push_back({file.parsed.key, file.parsed.rank});
  for (const PlannedFile& file : plan.bundles)
    segments[{file.node, 0}].bundles.push_back({file.parsed.key, file.parsed.rank});
  BELAY_TRY(remove_shares(view, manifests, log));
  return remove_shares(view, segments, log);
}

}  // namespace belay::inspect
