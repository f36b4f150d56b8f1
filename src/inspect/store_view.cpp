// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_view.hpp"

#include "inspect/stripes.hpp"
#include "vote/recovery.hpp"

#include <algorithm>
#include <set>

namespace belay::inspect {

const char* name_of(VersionState state) {
  switch (state) {
    case VersionState::whole:
      return "whole";
    case VersionState::incomplete:
      return "incomplete";
    case VersionState::damaged:
      break;
  }
  return "damaged";
}

const PartView* VersionView::part(Rank rank) const {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const PartView& part) { return part.rank == rank; });
  return found == parts.end() ? nullptr : &*found;
}

const Manifest* VersionView::any_manifest() const {
  for (const PartView& part : parts)
    if (part.manifest) return &*part.manifest;
  return nullptr;
}

Ledger VersionView::ledger_sum() const {
  Ledger sum{.version = key.version};
  const auto add = [&](std::uint64_t Ledger::*field, const Ledger& from) {
    sum.*field += from.*field;
  };
  for (const PartView& part : parts) {
    if (!part.manifest) continue;
    for (const auto field :
         {&Ledger::protected_bytes, &Ledger::untouched_bytes, &Ledger::unchanged_bytes,
          &Ledger::duplicate_here_bytes, &Ledger::duplicate_elsewhere_bytes, &Ledger::written_bytes,
          &Ledger::carried_bytes, &Ledger::encoded_bytes, &Ledger::file_bytes, &Ledger::settle_ns,
          &Ledger::detect_ns, &Ledger::stage_ns, &Ledger::wait_ns, &Ledger::blocking_ns,
          &Ledger::durable_ns})
      add(field, part.manifest->ledger);
  }
  return sum;
}

std::uint64_t VersionView::blocking_max_ns() const {
  std::uint64_t longest = 0;
  for (const PartView& part : parts)
    if (part.manifest) longest = std::max(longest, part.manifest->ledger.blocking_ns);
  return longest;
}

std::int64_t VersionView::time_ns() const {
  std::int64_t last = 0;
  for (const PartView& part : parts)
    if (part.manifest) last = std::max(last, part.manifest->time_ns);
  return last;
}

const VersionView* StoreView::find(VersionKey key) const {
  for (const VersionView& version : versions_)
    if (version.key == key) return &version;
  return nullptr;
}

const FoundFile* StoreView::find_file(const std::string& directory, const std::string& name) const {
  for (const NodeView& node : nodes_) {
    if (node.directory != directory) continue;
    const auto found = std::lower_bound(
        node.files.begin(), node.files.end(), name,
        [](const FoundFile& file, const std::string& wanted) { return file.name < wanted; });
    if (found != node.files.end() && found->name == name) return &*found;
  }
  return nullptr;
}

void StoreView::name_bundles(std::vector<Flaw>& flaws) const {
  for (Flaw& flaw : flaws)
    if (const FoundFile* file = find_file(flaw.directory, flaw.file)) flaw.bundles = file->bundles;
}

const VersionView* StoreView::newest_whole() const {
  for (const VersionView& version : versions_) {
    const Manifest* manifest = version.any_manifest();
    const bool dump = manifest != nullptr && manifest->dump;
    if (version.state == VersionState::whole && !dump) return &version;
  }
  return nullptr;
}

namespace {

// No job has as many; a hostile file may say so.
constexpr Rank kMostRanks = 1u << 20;

bool has_files_of(const NodeView& node, Rank rank) {
  return std::any_of(node.files.begin(), node.files.end(), [&](const FoundFile& file) {
    return file.parsed && file.parsed->rank == rank &&
           (file.parsed->kind == format::NameKind::segment ||
            file.parsed->kind == format::NameKind::manifest);
  });
}

vote::Survey survey_of(const StoreView& view, Rank rank) {
  vote::Survey survey;
  // A rank finds the records of its own node. Only its files say which that is; one that left none
  // may have been on any, so that for it a record counts if every node has it.
  std::optional<Run> own_record;
  std::optional<Run> least_record;
  for (const NodeView& node : view.nodes()) {
    for (const FoundFile& file : node.files) {
      if (!file.parsed) continue;
      survey.highest_run = std::max(survey.highest_run, file.parsed->key.run);
      if (file.parsed->key.version > survey.highest_number.version)
        survey.highest_number = file.parsed->key;
    }
    survey.settled = survey.settled || node.settled;
    least_record = std::min(least_record.value_or(node.highest_record), node.highest_record);
    if (has_files_of(node, rank))
      own_record = std::max(own_record.value_or(0), node.highest_record);
  }
  survey.highest_record = own_record.value_or(least_record.value_or(0));
  for (const VersionView& version : view.versions()) {
    const PartView* part = version.part(rank);
    if (part == nullptr) continue;
    const bool readable = part->manifest && version.state == VersionState::whole;
    survey.manifests.push_back({.key = version.key,
                                .rank = rank,
                                .parent = part->manifest ? part->manifest->parent : VersionKey{},
                                .readable = readable,
                                .dump = part->manifest && part->manifest->dump});
  }
  return survey;
}

}  // namespace

bool StoreView::has_existed() const {
  if (newest_whole() != nullptr) return true;
  if (std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node.settled; }))
    return true;
  if (versions_.empty() || identities_.empty()) return false;
  const Rank ranks = identities_.front().ranks;
  if (ranks > kMostRanks) return true;
  std::vector<vote::Survey> surveys;
  for (Rank rank = 0; rank < ranks; ++rank) surveys.push_back(survey_of(*this, rank));
  return vote::recover({}, surveys, 0).latest.has_value();
}

bool StoreView::sees_all_ranks() const {
  if (identities_.empty()) return true;
  std::set<Rank> seen;
  for (const NodeView& node : nodes_)
    for (const FoundFile& file : node.files)
      if (file.parsed && (file.parsed->kind == format::NameKind::segment ||
                          file.parsed->kind == format::NameKind::manifest))
        seen.insert(file.parsed->rank);
  return seen.empty() || seen.size() >= identities_.front().ranks;
}

std::vector<Flaw> StoreView::all_flaws() const {
  std::vector<Flaw> all = flaws_;
  for (const VersionView& version : versions_)
    all.insert(all.end(), version.flaws.begin(), version.flaws.end());
  return all;
}

bool StoreView::still_listed(const PartView& part, VersionKey key) const {
  auto& place = store::place_in(tier(part.node), nodes_[part.node].directory);
  const auto file = place.open(format::manifest_name(key, part.rank));
  return file || file.error().code() != Code::not_found;
}

Result<Manifest> StoreView::load(const PartView& part, VersionKey key) const {
  return vote::load_manifest(
      tier(part.node), key, part.rank,
      identities_.empty() ? std::optional<StoreId>{} : identities_.front().store);
}

SegmentUses::SegmentUses(const StoreView& view) : stripes_(view.stripes()) {
  for (const VersionView& version : view.versions()) {
    for (const PartView& part : version.parts) {
      if (!part.manifest) newest_unread_ = std::max(newest_unread_, version.key);
      if (!part.manifest) continue;
      for (const SegmentRef& segment : part.manifest->segments) needs_.segments.insert(segment.id);
    }
  }
  stripes_.complete(needs_);
}

SegmentUse SegmentUses::of(const SegmentId& id) const {
  if (needs_.segments.contains(id)) return SegmentUse::needed;
  // A manifest counts on segments of its own version and of older ones.
  return id.key <= newest_unread_ ? SegmentUse::unknown : SegmentUse::unneeded;
}

SegmentUse SegmentUses::of_shard(const SegmentId& shard) const {
  if (needs_.shards.contains(shard)) return SegmentUse::needed;
  // Without any description of the stripe nobody knows which members it had.
  const auto segment = needs_.segments.lower_bound({shard.key, 0});
  const bool needed = segment != needs_.segments.end() && segment->key == shard.key;
  return shard.key <= newest_unread_ || (needed && stripes_.of_shard(shard) == nullptr)
             ? SegmentUse::unknown
             : SegmentUse::unneeded;
}

}  // namespace belay::inspect
