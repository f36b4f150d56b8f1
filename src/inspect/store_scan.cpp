// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_scan.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/read_only_tier.hpp"
#include "inspect/stripes.hpp"
#include "store/bundle.hpp"
#include "store/overlay_tier.hpp"
#include "store/places.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace belay::inspect {
namespace {

constexpr std::string_view kNodePrefix = "node-";
// A job that retires a version every few milliseconds is met between two rounds sooner or later.
constexpr int kMostScans = 1000;
// A hostile file may claim any number of ranks; naming a few that are missing is enough.
constexpr std::size_t kNamedRanks = 8;

Flaw flaw_of(const Error& error, const NodeView& node, std::string file) {
  return {.code = error.code(),
          .directory = node.directory,
          .file = std::move(file),
          .reason = error.message()};
}

std::string describe(const vote::Identity& identity) {
  return fmt::format("store {} of application {}, {} ranks", to_hex(identity.store),
                     in_quotes(identity.application), identity.ranks);
}

bool is_record(const FoundFile& file) {
  if (!file.parsed) return file.name == format::kSettledName;
  return !file.parsed->temporary && (file.parsed->kind == format::NameKind::run ||
                                     file.parsed->kind == format::NameKind::closed);
}

bool is_a(const FoundFile& file, format::NameKind kind) {
  return file.parsed && !file.parsed->temporary && file.parsed->kind == kind;
}

Result<std::vector<os::DirectoryEntry>> list_store(os::Files& files, const std::string& store) {
  auto listed = within("store", files.list(store));
  if (listed || listed.error().code() != Code::not_found) return listed;
  return fail(Code::not_found, "{}; give the store with --store or in BELAY_STORE",
              listed.error().message());
}

/// `belay bench` keeps its figures in a store, perhaps before the first job comes.
bool is_unused(const std::vector<os::DirectoryEntry>& entries) {
  return std::all_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.name.starts_with("machine-") && entry.name.ends_with(".json");
  });
}

}  // namespace

StoreScan::StoreScan(os::Files& files, std::vector<std::string> stores) : view_(files) {
  view_.stores_ = std::move(stores);
}

Result<void> StoreScan::find_nodes(const std::string& store) {
  BELAY_ASSIGN(const auto entries, list_store(*view_.files_, store));
  bool found = false;
  bool inside = false;
  for (const os::DirectoryEntry& entry : entries) {
    inside = inside || format::parse_name(entry.name).has_value();
    if (!entry.name.starts_with(kNodePrefix)) continue;
    const std::string directory = store + "/" + entry.name;
    if (entry.kind != os::EntryKind::directory) {
      view_.flaws_.push_back(
          {.code = Code::corruption,
           .directory = store,
           .file = entry.name,
           .reason = "named like a node, but not a directory: it is not followed"});
      continue;
    }
    found = true;
    view_.nodes_.push_back(
        {.name = entry.name.substr(kNodePrefix.size()), .directory = directory, .files = {}});
  }
  if (!found && inside)
    return fail(Code::not_found,
                "{} is a node's directory, not a store; give the directory that it lies in", store);
  if (!found && is_unused(entries)) return {};
  if (!found)
    return fail(Code::not_found,
                "{} is not a store: no directory node-... is in it; give the store with --store",
                store);
  return {};
}

Result<void> StoreScan::list_files(std::size_t index) {
  NodeView& node = view_.nodes_[index];
  auto entries = view_.files_->list(node.directory);
  if (!entries && entries.error().code() == Code::not_found) {
    vanished_ = true;
    return {};
  }
  if (!entries) return Unexpected(entries.error());
  for (const os::DirectoryEntry& entry : *entries) {
    FoundFile file{.name = entry.name,
                   .parsed = format::parse_name(entry.name),
                   .regular = entry.kind == os::EntryKind::file};
    const bool ours = file.parsed || file.name == format::kSettledName;
    if (!ours && file.name != format::temporary_name(std::string(format::kSettledName))) continue;
    if (!file.regular) {
      Flaw flaw{.code = Code::corruption,
                .directory = node.directory,
                .file = file.name,
                .reason = "not a regular file: Belay never makes such a thing"};
      // A manifest's place that is taken by something else is a manifest that cannot be read.
      if (!is_a(file, format::NameKind::manifest)) view_.flaws_.push_back(flaw);
    }
    node.files.push_back(std::move(file));
  }
  BELAY_TRY(list_bundled(node));
  std::sort(node.files.begin(), node.files.end(),
            [](const FoundFile& a, const FoundFile& b) { return a.name < b.name; });
  return {};
}

/// What lies in bundles is listed as if it were files.
Result<void> StoreScan::list_bundled(NodeView& node) {
  const auto is_bundle = [](const FoundFile& file) { return is_a(file, format::NameKind::bundle); };
  if (std::none_of(node.files.begin(), node.files.end(), is_bundle)) return {};
  std::set<std::string> names;
  for (const FoundFile& file : node.files) names.insert(file.name);
  auto listed = store::open_place(*view_.files_, node.directory)->list();
  if (!listed) return Unexpected(listed.error());
  std::map<std::string, std::vector<std::string>> bundles;  // by what lies in them
  const auto tier = store::make_local_tier(*view_.files_, node.directory);
  for (const FoundFile& file : node.files) {
    if (!is_bundle(file) || !file.regular) continue;
    const auto bundle = store::Bundle::open(*tier, {file.parsed->key, file.parsed->rank});
    // One that cannot be read gives nothing: somebody must say so.
    if (!bundle && bundle.error().code() != Code::not_found)
      view_.flaws_.push_back(flaw_of(bundle.error(), node, file.name));
    if (!bundle) continue;
    for (const std::string& name : (*bundle)->names()) bundles[name].push_back(file.name);
  }
  for (const std::string& name : *listed)
    if (!names.contains(name) && bundles.contains(name))
      node.files.push_back({.name = name,
                            .parsed = format::parse_name(name),
                            .bundles = std::move(bundles.at(name))});
  return {};
}

void StoreScan::make_tiers() {
  for (std::size_t own = 0; own < view_.nodes_.size(); ++own) {
    std::vector<std::unique_ptr<store::Tier>> places;
    const auto add = [&](std::size_t node) {
      places.push_back(
          make_read_only_tier(store::open_place(*view_.files_, view_.nodes_[node].directory)));
    };
    add(own);
    for (std::size_t other = 0; other < view_.nodes_.size(); ++other)
      if (other != own) add(other);
    view_.tiers_.push_back(store::make_overlay_tier(std::move(places)));
  }
}

void StoreScan::count_identity(const vote::Identity& identity, const NodeView& node,
                               const std::string& file) {
  auto found = std::find_if(counted_.begin(), counted_.end(),
                            [&](const auto& entry) { return entry.first == identity; });
  if (found == counted_.end()) found = counted_.insert(found, {identity, {}});
  found->second.push_back({.directory = node.directory, .file = file});
}

void StoreScan::read_record(NodeView& node, const FoundFile& file) {
  auto tier = make_read_only_tier(store::open_place(*view_.files_, node.directory));
  auto bytes = store::read_whole(*tier, file.name, format::check_run_record_front);
  if (!bytes && bytes.error().code() == Code::not_found) {
    vanished_ = true;
    return;
  }
  auto record =
      bytes ? format::decode_run_record(*bytes) : Result<RunRecord>(Unexpected(bytes.error()));
  if (!record) {
    view_.flaws_.push_back(flaw_of(record.error(), node, file.name));
    return;
  }
  if (file.parsed && record->run != file.parsed->key.run)
    view_.flaws_.push_back(flaw_of(
        Error(Code::corruption, fmt::format("its content is another file's (run {})", record->run)),
        node, file.name));
  count_identity({record->store, record->seed, record->ranks, record->application}, node,
                 file.name);
}

void StoreScan::read_records() {
  for (NodeView& node : view_.nodes_) {
    for (const FoundFile& file : node.files) {
      if (!is_record(file)) continue;
      node.settled = node.settled || file.name == format::kSettledName;
      if (is_a(file, format::NameKind::run))
        node.highest_record = std::max(node.highest_record, file.parsed->key.run);
      if (file.regular) read_record(node, file);
    }
  }
}

void StoreScan::read_manifest(std::size_t index, const FoundFile& file) {
  const NodeView& node = view_.nodes_[index];
  const VersionKey key = file.parsed->key;
  VersionView& version = versions_[key];
  version.key = key;
  PartView part{.rank = file.parsed->rank, .node = index};
  auto tier = make_read_only_tier(store::open_place(*view_.files_, node.directory));
  auto manifest = vote::load_manifest(*tier, key, part.rank, {});
  if (!manifest && manifest.error().code() == Code::not_found) {
    vanished_ = true;
    return;
  }
  if (manifest) {
    const Origin& origin = manifest->origin;
    count_identity({origin.store, origin.seed, origin.ranks, manifest->application}, node,
                   file.name);
    manifest->fingerprints = {};  // whoever needs them loads them again
    manifest->holders = {};
  }
  if (auto size = tier->touch(file.name)) part.manifest_bytes = *size;
  add_part(version, std::move(part), manifest);
}

/// A manifest may lie on several nodes: the first that can be read is taken, the others must be
/// its copies.
void StoreScan::add_part(VersionView& version, PartView part, const Result<Manifest>& manifest) {
  const auto same = std::find_if(version.parts.begin(), version.parts.end(),
                                 [&](const PartView& other) { return other.rank == part.rank; });
  const bool read_already = same != version.parts.end() && same->manifest;
  std::optional<Error> error;
  if (!manifest)
    error = manifest.error();
  else if (read_already && manifest->origin != same->manifest->origin)
    error = Error(Code::corruption,
                  fmt::format("is no copy of the one in {}", view_.nodes_[same->node].directory));
  if (error) {
    Flaw flaw =
        flaw_of(*error, view_.nodes_[part.node], format::manifest_name(version.key, part.rank));
    flaw.version = version.key;
    flaw.rank = part.rank;
    version.flaws.push_back(std::move(flaw));
  }
  if (read_already) return;
  if (manifest) part.manifest = *manifest;
  if (same != version.parts.end())
    *same = std::move(part);
  else
    version.parts.push_back(std::move(part));
}

/// Newest first, and each version to its end: a job that retires versions quickly leaves those the
/// longest.
void StoreScan::read_manifests() {
  std::map<VersionKey, std::vector<std::pair<std::size_t, const FoundFile*>>> listed;
  for (std::size_t node = 0; node < view_.nodes_.size(); ++node)
    for (const FoundFile& file : view_.nodes_[node].files)
      if (is_a(file, format::NameKind::manifest)) listed[file.parsed->key].push_back({node, &file});
  view_.stripes_ = std::make_shared<const Stripes>(Stripes::read(*view_.files_, view_.nodes_));
  BlockSources sources(view_);
  for (auto entry = listed.rbegin(); entry != listed.rend(); ++entry) {
    for (const auto& [node, file] : entry->second) read_manifest(node, *file);
    VersionView& version = versions_[entry->first];
    for (const PartView& part : version.parts) {
      if (!part.manifest) continue;
      auto missing = find_missing(view_, sources, version.key, part);
      std::move(missing.begin(), missing.end(), std::back_inserter(version.flaws));
    }
    if (is_gone(version)) versions_.erase(entry->first);
  }
}

/// What is flawed may only have been on its way out: the manifest goes first, then its segments.
bool StoreScan::is_gone(const VersionView& version) {
  const bool gone = version.parts.empty() ||
                    (!version.flaws.empty() &&
                     std::any_of(version.parts.begin(), version.parts.end(), [&](const auto& part) {
                       return !view_.still_listed(part, version.key);
                     }));
  vanished_ = vanished_ || gone;
  return gone;
}

void StoreScan::read_sizes() {
  for (std::size_t node = 0; node < view_.nodes_.size(); ++node)
    for (FoundFile& file : view_.nodes_[node].files)
      if (auto size = file.regular && !file.bundled() ? view_.tiers_[node]->touch(file.name)
                                                      : Result<std::uint64_t>(0))
        file.bytes = *size;
}

/// The store that most files are of is the one; the rest are strangers in it.
void StoreScan::rank_identities() {
  std::stable_sort(counted_.begin(), counted_.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [identity, files] : counted_) view_.identities_.push_back(identity);
  view_.mixed_ = counted_.size() > 1;
  for (std::size_t i = 1; i < counted_.size(); ++i) {
    auto& [identity, files] = counted_[i];
    for (Flaw& flaw : files) {
      if (flaw.file.starts_with("manifest-")) continue;  // told with their versions
      flaw.reason = fmt::format("belongs to another store: {}, not {}", describe(identity),
                                describe(counted_[0].first));
      view_.flaws_.push_back(std::move(flaw));
    }
  }
}

void StoreScan::miss_votes(VersionView& version) {
  std::uint64_t left = version.ranks - version.parts.size();
  std::size_t named = 0;
  for (Rank rank = 0; left > 0 && named < kNamedRanks; ++rank) {
    if (version.part(rank) != nullptr) continue;
    --left;
    const bool cut = ++named == kNamedRanks && left > 0;
    version.flaws.push_back(
        {.code = Code::not_found,
         .file = format::manifest_name(version.key, rank),
         .reason = cut ? fmt::format("is missing, as {} more are", left) : "is missing",
         .version = version.key,
         .rank = rank});
  }
}

/// Manifests that are not of the store that most files are of cannot count.
void StoreScan::refuse_strangers(VersionView& version) {
  if (view_.identities_.empty()) return;
  const vote::Identity& identity = view_.identities_.front();
  for (PartView& part : version.parts) {
    if (!part.manifest) continue;
    const Origin& origin = part.manifest->origin;
    if (origin.store == identity.store && origin.seed == identity.seed &&
        origin.ranks == identity.ranks)
      continue;
    Flaw flaw = flaw_of(
        Error(Code::corruption, fmt::format("belongs to another store ({})", to_hex(origin.store))),
        view_.nodes_[part.node], format::manifest_name(version.key, part.rank));
    flaw.version = version.key;
    flaw.rank = part.rank;
    std::erase_if(version.flaws, [&](const Flaw& other) { return other.rank == part.rank; });
    version.flaws.push_back(std::move(flaw));
    part.manifest.reset();
  }
}

void StoreScan::judge(VersionView& version) {
  std::sort(version.parts.begin(), version.parts.end(),
            [](const auto& a, const auto& b) { return a.rank < b.rank; });
  refuse_strangers(version);
  for (const PartView& part : version.parts)
    if (part.manifest) version.ranks = part.manifest->origin.ranks;
  // A flaw of one copy of a manifest is none of the version if another copy can be read.
  const auto copies =
      std::stable_partition(version.flaws.begin(), version.flaws.end(), [&](const Flaw& flaw) {
        const auto* part = version.part(*flaw.rank);
        return !part->manifest || flaw.file != format::manifest_name(version.key, part->rank);
      });
  for (auto flaw = copies; flaw != version.flaws.end(); ++flaw) {
    flaw->version.reset();
    view_.flaws_.push_back(std::move(*flaw));
  }
  version.flaws.erase(copies, version.flaws.end());
  const bool lacks_votes = version.ranks == 0 || version.parts.size() < version.ranks;
  // A run that was closed left nothing in doubt: what lacks a vote has lost it.
  if (lacks_votes && version.ranks > 0 && version.key.run == view_.closed_run_) miss_votes(version);
  version.state = !version.flaws.empty() ? VersionState::damaged
                  : lacks_votes          ? VersionState::incomplete
                                         : VersionState::whole;
}

void StoreScan::find_closed_run() {
  Run closed = 0;
  Run highest = 0;
  for (const NodeView& node : view_.nodes_) {
    for (const FoundFile& file : node.files) {
      if (!file.parsed) continue;
      highest = std::max(highest, file.parsed->key.run);
      if (is_a(file, format::NameKind::closed)) closed = std::max(closed, file.parsed->key.run);
    }
  }
  view_.closed_run_ = closed == highest ? closed : 0;
}

/// Recording the run comes before any vote, and later runs remove only earlier records.
void StoreScan::find_lost_records() {
  for (const NodeView& node : view_.nodes_) {
    Run voted = 0;
    for (const FoundFile& file : node.files)
      if (is_a(file, format::NameKind::manifest)) voted = std::max(voted, file.parsed->key.run);
    if (voted > node.highest_record)
      view_.flaws_.push_back({.code = Code::not_found,
                              .directory = node.directory,
                              .file = format::run_name(voted),
                              .reason = "is missing, though the run has left versions here"});
  }
  const bool settled = std::any_of(view_.nodes_.begin(), view_.nodes_.end(),
                                   [](const NodeView& node) { return node.settled; });
  if (view_.closed() && view_.newest_whole() != nullptr && !settled)
    view_.flaws_.push_back({.code = Code::not_found,
                            .directory = view_.nodes_.front().directory,
                            .file = std::string(format::kSettledName),
                            .reason = "is missing, though versions have existed"});
}

/// Whoever closes a run removes what its versions do not need: a segment that is there nevertheless
/// has lost its manifest.
void StoreScan::find_orphans() {
  if (!view_.closed()) return;
  const SegmentUses uses(view_);
  for (const NodeView& node : view_.nodes_) {
    for (const FoundFile& file : node.files) {
      if (!is_a(file, format::NameKind::segment) || file.parsed->key.run != view_.closed_run_)
        continue;
      if (uses.of({file.parsed->key, file.parsed->rank}) != SegmentUse::unneeded) continue;
      view_.flaws_.push_back(
          {.code = Code::not_found,
           .directory = node.directory,
           .file = format::manifest_name(file.parsed->key, file.parsed->rank),
           .reason =
               fmt::format("is missing: {} is there, and no manifest counts on it", file.name),
           .version = file.parsed->key,
           .rank = file.parsed->rank});
    }
  }
}

Result<StoreView> StoreScan::run() {
  for (const std::string& store : view_.stores_) BELAY_TRY(find_nodes(store));
  for (std::size_t node = 0; node < view_.nodes_.size(); ++node) BELAY_TRY(list_files(node));
  make_tiers();
  find_closed_run();
  read_manifests();
  read_records();
  read_sizes();
  rank_identities();
  for (auto& [key, version] : versions_) judge(version);
  for (auto entry = versions_.rbegin(); entry != versions_.rend(); ++entry)
    view_.versions_.push_back(std::move(entry->second));
  find_lost_records();
  find_orphans();
  view_.name_bundles(view_.flaws_);
  for (VersionView& version : view_.versions_) view_.name_bundles(version.flaws);
  return std::move(view_);
}

Result<StoreView> StoreView::open(os::Files& files, const std::vector<std::string>& stores) {
  for (int scans = 1;; ++scans) {
    StoreScan scan(files, stores);
    auto view = scan.run();
    // What went is no flaw. But if nothing whole is left, something newer is there by now.
    if (!view || !scan.vanished() || view->newest_whole() != nullptr) return view;
    if (scans == kMostScans)
      return fail(Code::busy, "{} changes faster than it can be read; try again", stores.front());
  }
}

}  // namespace belay::inspect
