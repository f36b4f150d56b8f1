// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_rebuild.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "inspect/copy_spread.hpp"
#include "inspect/file_rebuild.hpp"
#include "inspect/node_homes.hpp"
#include "inspect/shard_rebuild.hpp"
#include "inspect/stripes.hpp"
#include "os/host.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace belay::inspect {
namespace {

std::string name_of(const BlockSource& source) {
  return source.kind == FileKind::copy ? format::copy_name(source.id)
                                       : format::segment_name(source.id);
}

bool is_record(const FoundFile& file) {
  if (!file.regular) return false;
  if (!file.parsed) return file.name == format::kSettledName;
  return !file.parsed->temporary && (file.parsed->kind == format::NameKind::run ||
                                     file.parsed->kind == format::NameKind::closed);
}

/// One pass over the store; each works with a view of its own, since files come to be there.
class RebuildPass {
 public:
  RebuildPass(const StoreView& view, const CheckReport& report, RebuildReport& done)
      : view_(view), done_(done), sources_(view), homes_(view) {
    for (const Flaw& flaw : report.flaws) {
      // A file of a format that is not known here, beside readable ones of the same content, is
      // damaged as well.
      if (flaw.code == Code::corruption || flaw.code == Code::unsupported)
        damaged_.insert({flaw.directory, flaw.file});
      if (flaw.code == Code::io) unreadable_.insert({flaw.directory, flaw.file});
    }
    for (const CheckedVersion& version : report.versions)
      if (version.state == VersionState::whole) whole_.insert(version.key);
    for (const VersionView& version : view.versions())
      if (whole_.contains(version.key)) want_segments(version);
    want_stripes();
  }

  Result<void> make_lost_nodes();
  Result<void> renew_manifests();
  Result<void> renew_segments();
  Result<void> renew_damaged_copies();
  Result<void> renew_shards();
  Result<void> add_copies();

 private:
  using Place = std::pair<std::string, std::string>;  ///< directory and file

  void want_segments(const VersionView& version);
  void want_stripes();
  bool is_damaged(std::size_t node, const std::string& name) const {
    return damaged_.contains({view_.nodes()[node].directory, name});
  }
  /// There is no such file to be moved away, and one of that name comes before what is in bundles.
  bool is_bundled(const Place& place) const {
    const FoundFile* const file = view_.find_file(place.first, place.second);
    return file != nullptr && file->bundled();
  }
  bool only_bundled(const SegmentId& id) const;
  bool may_write(const Place& place) const { return !unreadable_.contains(place); }
  void refuse(const std::string& file, const std::string& reason) {
    done_.repair.refused.push_back(file + ": " + reason);
  }
  Result<void> make_node(const std::string& directory);
  Result<std::optional<SegmentOutline>> find_outline(const SegmentId& id);
  Result<void> renew_segment(const SegmentRef& segment, const std::vector<BlockSource>& files);
  Result<void> write_segment(const Place& place, const SegmentOutline& outline,
                             const std::optional<BlockSource>& damaged);
  Result<void> write_manifest(const Place& place, const std::vector<std::byte>& bytes,
                              bool damaged);
  std::vector<std::size_t> manifest_takers(VersionKey key, const std::string& name) const;
  Result<void> renew_manifest(const VersionView& version, const PartView& part);
  std::vector<std::size_t> fewest_first(VersionKey key, format::NameKind kind) const;
  std::vector<std::size_t> takers_of(const SegmentId& id) const;
  Result<void> add_copies_of(const SegmentRef& segment, CopySpread& spread);

  const StoreView& view_;
  RebuildReport& done_;
  BlockSources sources_;
  NodeHomes homes_;
  std::set<VersionKey> whole_;  ///< nothing else can be, and part of the nodes may be out of view
  std::set<Place> damaged_;
  std::set<Place> unreadable_;  ///< here; elsewhere they may be good
  std::map<SegmentId, SegmentRef> wanted_;
};

/// What nothing but bundles has is on the global tier, which has no other files of it.
bool RebuildPass::only_bundled(const SegmentId& id) const {
  const auto files = sources_.files_of(id);
  return !files.empty() && std::all_of(files.begin(), files.end(), [&](const BlockSource& source) {
    return is_bundled({view_.nodes()[source.node].directory, name_of(source)});
  });
}

void RebuildPass::want_segments(const VersionView& version) {
  for (const PartView& part : version.parts) {
    if (!part.manifest) continue;
    for (SegmentRef segment : part.manifest->segments) {
      // Stripes keep blocks safe by other means.
      if (part.manifest->level.has_parity()) segment.nodes = 0;
      if (segment.id.rank != kAnyRank) wanted_.emplace(segment.id, segment);
    }
  }
}

/// Members that no manifest counts on any more are part of what others are rebuilt from.
void RebuildPass::want_stripes() {
  vote::Needs needs;
  for (const auto& [id, segment] : wanted_) needs.segments.insert(id);
  view_.stripes().complete(needs);
  for (const SegmentId& id : needs.segments)
    if (const auto seat = view_.stripes().of(id)) {
      const Stripe& stripe = seat->stripe->stripe;
      wanted_.emplace(id, SegmentRef{.id = id,
                                     .file_bytes = stripe.members[seat->seat].file_bytes,
                                     .shards = stripe.level.shards});
    }
}

/// Makes the directory of a lost node, locks it like the others, and says in it whose it is.
Result<void> RebuildPass::make_node(const std::string& directory) {
  BELAY_TRY(view_.files().make_directory(directory));
  BELAY_ASSIGN(auto lock, view_.files().lock(directory + "/" + std::string(format::kLockName),
                                             fmt::format("host {} pid {} belay check --repair",
                                                         os::host_name(), os::process_id())));
  done_.locks.push_back(std::move(lock));
  done_.repair.steps.push_back({"made again", directory, "", "the node has lost it"});
  const auto tier = store::make_local_tier(view_.files(), directory);
  std::set<std::string> copied;
  for (std::size_t node = 0; node < view_.nodes().size(); ++node)
    for (const FoundFile& file : view_.nodes()[node].files) {
      if (!is_record(file) || is_damaged(node, file.name) || !copied.insert(file.name).second)
        continue;
      BELAY_ASSIGN(const auto bytes,
                   store::read_whole(view_.tier(node), file.name, format::check_run_record_front));
      BELAY_TRY(store::put_whole(*tier, file.name, bytes, /*exclusive=*/true));
      done_.repair.steps.push_back(
          {"made again", directory, file.name, "from another node, whose process it names"});
    }
  return {};
}

Result<void> RebuildPass::make_lost_nodes() {
  std::set<std::string> known;
  for (const NodeView& node : view_.nodes()) known.insert(node.directory);
  for (const auto& [id, segment] : wanted_) {
    if ((segment.nodes < 2 && segment.shards == 0) || only_bundled(id)) continue;
    const auto home = homes_.directory_of(id.rank, id.key.run);
    if (home && known.insert(*home).second) BELAY_TRY(make_node(*home));
  }
  return {};
}

/// From a copy, which has the whole index, or from the manifest of its own version. Unset: nothing
/// says what it was.
Result<std::optional<SegmentOutline>> RebuildPass::find_outline(const SegmentId& id) {
  auto files = sources_.of(id);
  std::stable_partition(files.begin(), files.end(), [&](const BlockSource& source) {
    return !is_damaged(source.node, name_of(source));
  });
  for (const BlockSource& source : files)
    if (auto outline = read_outline(view_, source)) return std::optional(outline->complete());
  const VersionView* version = view_.find(id.key);
  const PartView* part = version == nullptr ? nullptr : version->part(id.rank);
  if (part == nullptr || !part->manifest) return std::optional<SegmentOutline>();
  BELAY_ASSIGN(const auto manifest, view_.load(*part, id.key));
  return outline_of(manifest);
}

Result<void> RebuildPass::write_segment(const Place& place, const SegmentOutline& outline,
                                        const std::optional<BlockSource>& damaged) {
  const auto& [directory, name] = place;
  BELAY_ASSIGN(auto blocks, BlockSearch::open(view_, sources_, outline, damaged));
  const auto tier = store::make_local_tier(view_.files(), directory);
  const bool moves = damaged && !is_bundled(place);
  const auto made = rebuild_segment({*tier, view_.files(), name, moves}, outline, blocks);
  if (!made && made.error().code() == Code::not_found) {
    refuse(directory + "/" + name, made.error().message());
    return {};
  }
  if (!made) return Unexpected(made.error());
  if (*made)
    done_.repair.steps.push_back({"moved to quarantine", directory, name, "it is damaged"});
  done_.repair.steps.push_back(
      {"made again", directory, name, "from blocks that other files have"});
  return {};
}

Result<void> RebuildPass::renew_segment(const SegmentRef& segment,
                                        const std::vector<BlockSource>& files) {
  const std::string name = format::segment_name(segment.id);
  BELAY_ASSIGN(const auto outline, find_outline(segment.id));
  if (!outline) {
    refuse(name,
           "no copy of it is left, and the manifest of its version is not there any more: "
           "nothing says which blocks it had; versions find theirs in other files");
    return {};
  }
  if (outline->file_bytes() != segment.file_bytes) {
    refuse(name, fmt::format("it would have {} bytes instead of {}", outline->file_bytes(),
                             segment.file_bytes));
    return {};
  }
  const auto old = std::find_if(files.begin(), files.end(), [](const BlockSource& source) {
    return source.kind == FileKind::segment;
  });
  if (old != files.end())
    return write_segment({view_.nodes()[old->node].directory, name}, *outline, *old);
  // Its node may have lost nothing but the segment.
  const auto seat = view_.stripes().of(segment.id);
  const auto node = seat ? seat->stripe->node_of(seat->seat) : std::nullopt;
  const auto home = node ? Result(view_.nodes()[*node].directory)
                         : homes_.directory_of(segment.id.rank, segment.id.key.run);
  if (!home) {
    refuse(name, home.error().message());
    return {};
  }
  const bool taken = std::any_of(files.begin(), files.end(), [&](const BlockSource& source) {
    return source.kind == FileKind::copy && view_.nodes()[source.node].directory == *home;
  });
  if (taken) {
    refuse(name, *home + " has a copy of it, and both on one node would be of no use");
    return {};
  }
  return write_segment({*home, name}, *outline, {});
}

Result<void> RebuildPass::renew_segments() {
  for (const auto& [id, segment] : wanted_) {
    const std::string name = format::segment_name(id);
    const auto files = sources_.of(id);
    bool good = false;
    for (const BlockSource& source : files)
      if (source.kind == FileKind::segment)
        good = good || !is_damaged(source.node, name) ||
               !may_write({view_.nodes()[source.node].directory, name});
    if (!good && !only_bundled(id)) BELAY_TRY(renew_segment(segment, files));
  }
  return {};
}

Result<void> RebuildPass::renew_damaged_copies() {
  for (const auto& [id, segment] : wanted_)
    for (const BlockSource& source : sources_.of(id)) {
      if (source.kind != FileKind::copy || !is_damaged(source.node, name_of(source))) continue;
      BELAY_ASSIGN(const auto whole, find_outline(id));
      const auto outline = whole ? read_damaged_copy(view_, source, *whole) : std::nullopt;
      if (!outline) continue;  // left to add_copies()
      BELAY_TRY(
          write_segment({view_.nodes()[source.node].directory, name_of(source)}, *outline, source));
    }
  return {};
}

/// Nodes by how many files of this kind they have of a version: the one that has lost its files has
/// the fewest.
std::vector<std::size_t> RebuildPass::fewest_first(VersionKey key, format::NameKind kind) const {
  std::vector<std::pair<std::size_t, std::size_t>> counts;
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    const auto& files = view_.nodes()[node].files;
    const auto count = std::count_if(files.begin(), files.end(), [&](const FoundFile& file) {
      return file.parsed && !file.parsed->temporary && file.parsed->key == key &&
             file.parsed->kind == kind;
    });
    counts.emplace_back(static_cast<std::size_t>(count), node);
  }
  std::sort(counts.begin(), counts.end());
  std::vector<std::size_t> nodes;
  for (const auto& [count, node] : counts) nodes.push_back(node);
  return nodes;
}

Result<void> RebuildPass::write_manifest(const Place& place, const std::vector<std::byte>& bytes,
                                         bool damaged) {
  const auto& [directory, name] = place;
  const auto tier = store::make_local_tier(view_.files(), directory);
  const bool moves = damaged && !is_bundled(place);
  BELAY_ASSIGN(const bool moved, rebuild_manifest({*tier, view_.files(), name, moves}, bytes));
  if (moved)
    done_.repair.steps.push_back({"moved to quarantine", directory, name, "it is damaged"});
  done_.repair.steps.push_back({"made again", directory, name, "from a copy on another node"});
  return {};
}

/// A job that ended too early has left copies that did not get their names; else the node with the
/// fewest has lost its own.
std::vector<std::size_t> RebuildPass::manifest_takers(VersionKey key,
                                                      const std::string& name) const {
  std::vector<std::size_t> nodes = fewest_first(key, format::NameKind::manifest);
  const std::string temporary = format::temporary_name(name);
  std::stable_partition(nodes.begin(), nodes.end(), [&](std::size_t node) {
    const auto& files = view_.nodes()[node].files;
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& file) { return file.name == temporary; });
  });
  return nodes;
}

Result<void> RebuildPass::renew_manifest(const VersionView& version, const PartView& part) {
  const std::string name = format::manifest_name(version.key, part.rank);
  std::vector<std::size_t> good;
  std::vector<std::size_t> bad;
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    const auto& files = view_.nodes()[node].files;
    if (std::none_of(files.begin(), files.end(), [&](const auto& f) { return f.name == name; }))
      continue;
    (is_damaged(node, name) ? bad : good).push_back(node);
  }
  const std::size_t wanted = part.manifest->level.losses() + 1;
  if (good.empty() || (bad.empty() && good.size() >= wanted)) return {};
  BELAY_ASSIGN(const auto bytes,
               store::read_whole(view_.tier(good.front()), name, format::check_manifest_front));
  BELAY_TRY(format::decode_manifest(bytes));
  for (const std::size_t node : bad)
    BELAY_TRY(write_manifest({view_.nodes()[node].directory, name}, bytes, /*damaged=*/true));
  std::set<std::string> has;
  for (const auto* nodes : {&good, &bad})
    for (const std::size_t node : *nodes) has.insert(view_.nodes()[node].directory);
  std::vector<std::string> others;
  if (auto home = homes_.directory_of(part.rank, version.key.run)) others.push_back(*home);
  for (const std::size_t node : manifest_takers(version.key, name))
    others.push_back(view_.nodes()[node].directory);
  for (const std::string& directory : others) {
    if (has.size() >= wanted) break;
    if (has.contains(directory) || !may_write({directory, name})) continue;
    BELAY_TRY(write_manifest({directory, name}, bytes, /*damaged=*/false));
    has.insert(directory);
  }
  if (has.size() < wanted)
    refuse(name, fmt::format("there are only {} nodes for {} copies", has.size(), wanted));
  return {};
}

Result<void> RebuildPass::renew_manifests() {
  for (const VersionView& version : view_.versions()) {
    if (!whole_.contains(version.key)) continue;
    for (const PartView& part : version.parts)
      if (part.manifest) BELAY_TRY(renew_manifest(version, part));
  }
  return {};
}

/// Where one more copy belongs: nodes that have a damaged one, then those that have copies of the
/// manifest, since both go the same way as a rule, then those with the fewest copies.
std::vector<std::size_t> RebuildPass::takers_of(const SegmentId& id) const {
  const std::string name = format::copy_name(id);
  const std::string manifest = format::manifest_name(id.key, id.rank);
  std::vector<std::size_t> nodes = fewest_first(id.key, format::NameKind::copy);
  std::stable_partition(nodes.begin(), nodes.end(), [&](std::size_t node) {
    const auto& files = view_.nodes()[node].files;
    return std::any_of(files.begin(), files.end(),
                       [&](const auto& f) { return f.name == manifest; });
  });
  std::stable_partition(nodes.begin(), nodes.end(),
                        [&](std::size_t node) { return is_damaged(node, name); });
  std::erase_if(nodes, [&](std::size_t node) {
    return !may_write({view_.nodes()[node].directory, name});
  });
  return nodes;
}

/// Copies of the segment with the blocks that are on too few nodes.
Result<void> RebuildPass::add_copies_of(const SegmentRef& segment, CopySpread& spread) {
  const std::string name = format::copy_name(segment.id);
  for (const std::size_t node : takers_of(segment.id)) {
    auto lacking = spread.lacking(segment.id, segment.nodes, node);
    if (std::find(lacking.begin(), lacking.end(), true) == lacking.end()) continue;
    const auto copy = spread.segment(segment.id)->with_only(std::move(lacking));
    const auto old = is_damaged(node, name)
                         ? std::optional(BlockSource{node, segment.id, FileKind::copy})
                         : std::nullopt;
    BELAY_TRY(write_segment({view_.nodes()[node].directory, name}, copy, old));
    spread.add(node, segment.id, copy);
  }
  if (spread.lacks(segment.id, segment.nodes))
    refuse(name,
           "some of its blocks are on fewer nodes than they should be, and there is no "
           "other node that could take a copy");
  return {};
}

Result<void> RebuildPass::renew_shards() {
  ShardRebuild rebuild{view_, homes_, damaged_, unreadable_, done_.repair};
  for (const StripeView& stripe : view_.stripes().all()) {
    const auto& members = stripe.stripe.members;
    const bool wanted = std::any_of(members.begin(), members.end(), [&](const auto& member) {
      return wanted_.contains({stripe.stripe.key, member.rank});
    });
    if (wanted) BELAY_TRY(rebuild.run(stripe));
  }
  return {};
}

Result<void> RebuildPass::add_copies() {
  std::set<VersionKey> keys;
  for (const auto& [id, segment] : wanted_)
    if (segment.nodes > 1 && !only_bundled(id)) keys.insert(id.key);
  for (const VersionKey key : keys) {
    CopySpread spread(view_, sources_, key, [&](const BlockSource& source) {
      return !is_damaged(source.node, name_of(source));
    });
    for (auto entry = wanted_.lower_bound({key, 0});
         entry != wanted_.end() && entry->first.key == key; ++entry) {
      if (entry->second.nodes > 1 && !only_bundled(entry->first) &&
          spread.segment(entry->first) != nullptr)
        BELAY_TRY(add_copies_of(entry->second, spread));
    }
  }
  return {};
}

/// What has been made again is no flaw any more.
CheckReport without_renewed(CheckReport report, const RepairReport& repair) {
  std::erase_if(report.flaws, [&](const Flaw& flaw) {
    return std::any_of(repair.steps.begin(), repair.steps.end(), [&](const RepairStep& step) {
      return step.directory == flaw.directory && step.file == flaw.file;
    });
  });
  return report;
}

Result<void> rebuild(const StoreView& view, const CheckReport& report, RebuildReport& done) {
  BELAY_TRY(RebuildPass(view, report, done).make_lost_nodes());
  BELAY_ASSIGN(const auto with_nodes, StoreView::open(view.files(), view.stores()));
  RebuildPass pass(with_nodes, report, done);
  BELAY_TRY(pass.renew_segments());
  BELAY_TRY(pass.renew_damaged_copies());
  BELAY_TRY(pass.renew_manifests());
  // Copies are counted when everything else is in place.
  BELAY_ASSIGN(const auto with_segments, StoreView::open(view.files(), view.stores()));
  RebuildPass last(with_segments, without_renewed(report, done.repair), done);
  BELAY_TRY(last.renew_shards());
  return last.add_copies();
}

}  // namespace

Result<RebuildReport> rebuild_files(const StoreView& view, const CheckReport& report) {
  RebuildReport done;
  if (view.mixed() || view.identities().empty()) return done;
  BELAY_TRY(within_memory([&] { return rebuild(view, report, done); }));
  return done;
}

}  // namespace belay::inspect
