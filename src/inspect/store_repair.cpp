// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_repair.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "inspect/quarantine.hpp"
#include "inspect/stripes.hpp"
#include "store/places.hpp"
#include "vote/publish.hpp"

#include <algorithm>
#include <set>

namespace belay::inspect {
namespace {

class StoreRepair {
 public:
  StoreRepair(const StoreView& view, const CheckReport& report) : view_(view), report_(report) {
    for (const NodeView& node : view_.nodes())
      tiers_.push_back(store::open_place(view_.files(), node.directory));
  }

  Result<RepairReport> run();

 private:
  bool may_repair();
  RunRecord record_of(Run run) const;
  Result<void> make_record(std::size_t node, const std::string& name, Run run);
  Result<void> renew_records();
  Result<void> settle();
  void choose_versions();
  Result<void> move_manifests();
  Result<void> move_segments();
  Result<void> move_strange();
  Result<void> remove_leftovers();
  bool is_only_trace(const Leftover& leftover) const;
  Result<void> leave_trace();
  Result<void> move(std::size_t node, const std::string& file, const std::string& reason);
  Result<void> retire(std::size_t node, const std::string& file);
  Result<void> sync();
  void note(std::string action, std::size_t node, std::string file, std::string reason);
  bool is_needed(const format::ParsedName& file) const {
    const SegmentId id{file.key, file.rank};
    if (file.kind != format::NameKind::shard) return needs_.has(id);
    return needs_.has_shard(id) || view_.stripes().of_shard(id) == nullptr;
  }

  const StoreView& view_;
  const CheckReport& report_;
  std::vector<std::unique_ptr<store::Tier>> tiers_;  ///< by node, for writing
  std::set<VersionKey> damaged_;                     ///< versions whose files are to go
  vote::Needs needs_;                                ///< of versions that stay
  VersionKey highest_;                               ///< number of any name
  RepairReport done_;
};

VersionKey highest_number(const StoreView& view) {
  VersionKey highest;
  for (const NodeView& node : view.nodes())
    for (const FoundFile& file : node.files)
      if (file.parsed && file.parsed->key.version > highest.version) highest = file.parsed->key;
  return highest;
}

void StoreRepair::note(std::string action, std::size_t node, std::string file, std::string reason) {
  done_.steps.push_back(
      {std::move(action), view_.nodes()[node].directory, std::move(file), std::move(reason)});
}

bool StoreRepair::may_repair() {
  if (view_.mixed()) {
    done_.refused.push_back(
        "the store is a mixture of stores: nobody but you knows which files belong here; move the "
        "others away");
    return false;
  }
  if (view_.identities().empty()) {
    done_.refused.push_back("no file says whose store this is");
    return false;
  }
  if (report_.newest_whole() == nullptr && (!report_.versions.empty() || view_.has_existed())) {
    done_.refused.push_back(
        "no version is whole: nothing can be repaired from what is here, and every file stays as "
        "it is for a rescue by hand; give the directories of all nodes with --store, or bring back "
        "a copy");
    return false;
  }
  return true;
}

RunRecord StoreRepair::record_of(Run run) const {
  const vote::Identity& identity = view_.identities().front();
  return {.store = identity.store,
          .seed = identity.seed,
          .run = run,
          .ranks = identity.ranks,
          .application = identity.application,
          .host = {}};
}

Result<void> StoreRepair::make_record(std::size_t node, const std::string& name, Run run) {
  BELAY_TRY(store::put_whole(*tiers_[node], name, format::encode_run_record(record_of(run)),
                             /*exclusive=*/false));
  note("made again", node, name, "from what other files say about the store");
  return {};
}

/// Run records and marks hold nothing that other files do not say too, but for host and time.
Result<void> StoreRepair::renew_records() {
  for (const Flaw& flaw : report_.flaws) {
    const bool settled = flaw.file == format::kSettledName;
    const auto parsed = format::parse_name(flaw.file);
    const bool record =
        parsed && !parsed->temporary &&
        (parsed->kind == format::NameKind::run || parsed->kind == format::NameKind::closed);
    if ((!settled && !record) || (flaw.code != Code::corruption && flaw.code != Code::not_found))
      continue;
    for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
      if (view_.nodes()[node].directory != flaw.directory) continue;
      if (flaw.code == Code::corruption) BELAY_TRY(move(node, flaw.file, flaw.reason));
      const Run run = settled ? report_.versions.back().key.run : parsed->key.run;
      BELAY_TRY(make_record(node, flaw.file, run));
    }
  }
  return {};
}

/// Whatever goes afterwards, the store must not look like one that never had a version.
Result<void> StoreRepair::settle() {
  const bool settled = std::any_of(view_.nodes().begin(), view_.nodes().end(),
                                   [](const NodeView& node) { return node.settled; });
  if (settled || !view_.has_existed()) return {};
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    const bool made = std::any_of(done_.steps.begin(), done_.steps.end(), [&](const auto& step) {
      return step.file == format::kSettledName && step.directory == view_.nodes()[node].directory;
    });
    if (!made)
      BELAY_TRY(
          make_record(node, std::string(format::kSettledName), report_.newest_whole()->key.run));
  }
  return {};
}

/// Damaged versions go, unless it is only that a file could not be read or understood here.
void StoreRepair::choose_versions() {
  for (const CheckedVersion& version : report_.versions) {
    if (version.state != VersionState::damaged) continue;
    bool untouchable = false;
    for (const Flaw& flaw : report_.flaws)
      if (flaw.version == version.key &&
          (flaw.code != Code::corruption && flaw.code != Code::not_found))
        untouchable = true;
    if (!untouchable) damaged_.insert(version.key);
    if (untouchable)
      done_.refused.push_back(
          fmt::format("version {} of run {} could not be read or understood here, which is not "
                      "damage: it stays",
                      version.key.version, version.key.run));
  }
  for (const VersionView& version : view_.versions()) {
    if (damaged_.contains(version.key)) continue;
    for (const PartView& part : version.parts) {
      if (!part.manifest) needs_.unread = std::max(needs_.unread, version.key);
      if (!part.manifest) continue;
      for (const SegmentRef& segment : part.manifest->segments) needs_.segments.insert(segment.id);
    }
  }
  view_.stripes().complete(needs_);
}

Result<void> StoreRepair::move(std::size_t node, const std::string& file,
                               const std::string& reason) {
  BELAY_TRY(move_to_quarantine(view_.files(), view_.nodes()[node].directory, file));
  note("moved to quarantine", node, file, reason);
  return {};
}

/// A manifest in a bundle cannot be moved by itself; a mark says that it does not count.
Result<void> StoreRepair::retire(std::size_t node, const std::string& file) {
  auto removed = tiers_[node]->remove(file);
  if (!removed && removed.error().code() != Code::not_found) return removed;
  if (removed) note("retired", node, file, "its version is damaged");
  return {};
}

Result<void> StoreRepair::sync() {
  for (const auto& tier : tiers_) BELAY_TRY(tier->sync_names());
  return {};
}

Result<void> StoreRepair::move_manifests() {
  for (std::size_t node = 0; node < view_.nodes().size(); ++node)
    for (const FoundFile& file : view_.nodes()[node].files)
      if (file.parsed && !file.parsed->temporary &&
          file.parsed->kind == format::NameKind::manifest && damaged_.contains(file.parsed->key))
        BELAY_TRY(file.bundled() ? retire(node, file.name)
                                 : move(node, file.name, "its version is damaged"));
  return sync();
}

/// Segments, copies and shards of damaged versions keep company with the manifests, as long as
/// nobody else needs them.
Result<void> StoreRepair::move_segments() {
  vote::Needs theirs;
  for (const VersionView& version : view_.versions()) {
    if (!damaged_.contains(version.key)) continue;
    for (const PartView& part : version.parts) {
      theirs.segments.insert({version.key, part.rank});
      if (!part.manifest) continue;
      for (const SegmentRef& segment : part.manifest->segments) theirs.segments.insert(segment.id);
    }
  }
  view_.stripes().complete(theirs);
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    for (const FoundFile& file : view_.nodes()[node].files) {
      if (!file.parsed || file.parsed->temporary || file.bundled() ||
          (file.parsed->kind != format::NameKind::segment &&
           file.parsed->kind != format::NameKind::copy &&
           file.parsed->kind != format::NameKind::shard))
        continue;
      const SegmentId id{file.parsed->key, file.parsed->rank};
      const bool is_theirs =
          file.parsed->kind == format::NameKind::shard ? theirs.has_shard(id) : theirs.has(id);
      if (is_theirs && !is_needed(*file.parsed))
        BELAY_TRY(move(node, file.name, "only damaged versions need it"));
    }
  }
  return sync();
}

/// Links, pipes and directories where files belong; a rename does not follow them.
Result<void> StoreRepair::move_strange() {
  for (std::size_t node = 0; node < view_.nodes().size(); ++node)
    for (const FoundFile& file : view_.nodes()[node].files) {
      const bool moved = std::any_of(done_.steps.begin(), done_.steps.end(), [&](const auto& step) {
        return step.file == file.name && step.directory == view_.nodes()[node].directory;
      });
      if (!file.regular && !moved) BELAY_TRY(move(node, file.name, "not a regular file"));
    }
  return {};
}

/// Numbers are never used twice, and only names of files remember which were.
bool StoreRepair::is_only_trace(const Leftover& leftover) const {
  const auto parsed = format::parse_name(leftover.file);
  if (!parsed || parsed->key.version < highest_.version) return false;
  for (const NodeView& node : view_.nodes())
    for (const FoundFile& file : node.files)
      if (file.parsed && !file.parsed->temporary && file.parsed->key.version >= highest_.version &&
          file.name != leftover.file && !damaged_.contains(file.parsed->key))
        return false;
  return true;
}

Result<void> StoreRepair::remove_leftovers() {
  for (const Leftover& leftover : report_.leftovers) {
    if (leftover.temporary && is_only_trace(leftover)) continue;
    const auto parsed = format::parse_name(leftover.file);
    if (!leftover.temporary && (is_needed(*parsed) || !view_.sees_all_ranks())) continue;
    // It may be all that is left of a version whose manifest is missing.
    const bool lost = std::any_of(report_.flaws.begin(), report_.flaws.end(), [&](const Flaw& f) {
      return !leftover.temporary && f.version == parsed->key && f.code == Code::not_found;
    });
    if (lost) {
      BELAY_TRY(move(leftover.node, leftover.file, "its manifest is missing"));
      continue;
    }
    auto removed = tiers_[leftover.node]->remove(leftover.file);
    if (!removed && removed.error().code() != Code::not_found) return removed;
    note("removed", leftover.node, leftover.file, "no version needs it");
  }
  return sync();
}

Result<void> StoreRepair::leave_trace() {
  BELAY_ASSIGN(const auto now, StoreView::open(view_.files(), view_.stores()));
  if (highest_number(now).version >= highest_.version) return {};
  const std::string name = format::temporary_name(format::manifest_name(highest_, 0));
  BELAY_ASSIGN(const auto file, tiers_.front()->create(name));
  BELAY_TRY(file->sync());
  BELAY_TRY(file->close());
  note("left as a trace", 0, name, fmt::format("number {} was used", highest_.version));
  return tiers_.front()->sync_names();
}

Result<RepairReport> StoreRepair::run() {
  if (!may_repair()) return std::move(done_);
  highest_ = highest_number(view_);
  choose_versions();
  if (!report_.versions.empty()) {
    BELAY_TRY(renew_records());
    BELAY_TRY(settle());
  }
  BELAY_TRY(move_manifests());
  BELAY_TRY(move_segments());
  BELAY_TRY(move_strange());
  BELAY_TRY(remove_leftovers());
  BELAY_TRY(leave_trace());
  BELAY_TRY(sync());
  return std::move(done_);
}

}  // namespace

Result<RepairReport> repair_store(const StoreView& view, const CheckReport& report) {
  return StoreRepair(view, report).run();
}

}  // namespace belay::inspect
