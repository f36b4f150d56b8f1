// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_check.hpp"

#include "base/try.hpp"
#include "inspect/audited_file.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/elsewhere_blocks.hpp"
#include "inspect/manifest_cache.hpp"
#include "inspect/natural_copies.hpp"
#include "inspect/shard_audit.hpp"
#include "inspect/stripes.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

namespace belay::inspect {
namespace {

/// A manifest that counts on a segment.
struct Reference {
  const VersionView* version = nullptr;
  const PartView* part = nullptr;
  std::uint64_t file_bytes = 0;  ///< that the segment must have
  bool holds = true;             ///< false: of another rank, counted on for blocks elsewhere
};

/// A segment with its copies, and what its stripe gives back if it is not good.
struct Verdict {
  AuditedFile segment;
  std::vector<AuditedFile> copies;
  std::set<std::uint64_t> told_offsets;   ///< bad blocks of the segment that cost a version
  std::set<std::uint64_t> equal_offsets;  ///< those that segments of other ranks have as well
  bool told = false;                      ///< its loss has cost a version

  bool copies_have(const Manifest& manifest, const BlockName& name) const {
    return std::any_of(copies.begin(), copies.end(), [&](const AuditedFile& copy) {
      return copy.has_good(name) && has_same_hash(*copy.file, manifest);
    });
  }
};

class StoreCheck {
 public:
  StoreCheck(const StoreView& view, const CheckProgress& progress)
      : view_(view),
        progress_(progress),
        manifests_(view),
        sources_(view),
        natural_(view, sources_),
        uses_(view) {}

  Result<CheckReport> run(unsigned threads);

 private:
  void plan();
  Result<void> want_elsewhere();
  void advance(std::uint64_t bytes);
  void count(const AuditedFile& audited);
  Result<std::shared_ptr<const Manifest>> load(const Reference& reference);
  Verdict audit(const SegmentId& id, const std::vector<Reference>& references);
  Result<void> check_segment(const SegmentId& id, const std::vector<Reference>& references);
  Result<void> check_reference(const SegmentId& id, const Reference& reference, Verdict& verdict);
  std::optional<Error> loss_for(const Manifest& manifest, const SegmentRef& segment,
                                const AuditedFile& audited) const;
  Result<void> check_elsewhere(VersionKey key, const Reference& reference);
  void check_doubtful(const BlockSource& source);
  const AuditedFile* bundled_copy(const Verdict& verdict) const;
  void add_region(Flaw flaw, const RegionRecord& region, std::uint64_t blocks, std::string reason);
  void add_segment_damage(const Verdict& verdict, bool holds);
  std::string directory_of(const SegmentId& id, std::size_t guess) const;
  void add_flaws_of_view();
  Result<void> check_shards();
  void check_unlisted();
  void judge_versions();

  const StoreView& view_;
  const CheckProgress& progress_;
  ManifestCache manifests_;
  BlockSources sources_;
  NaturalCopies natural_;
  SegmentUses uses_;
  std::optional<SegmentAudit> audit_;
  /// By rank first, so that the manifests of one rank serve for all its segments.
  std::map<std::tuple<Rank, VersionKey>, std::vector<Reference>> segments_;
  std::map<VersionKey, std::vector<Reference>> elsewhere_;
  ElsewhereBlocks elsewhere_blocks_;
  std::map<std::string, std::size_t> node_of_file_;
  std::set<VersionKey> gone_;  ///< retired while they were checked
  CheckReport report_;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

void StoreCheck::plan() {
  for (const VersionView& version : view_.versions()) {
    for (const PartView& part : version.parts) {
      total_bytes_ += part.manifest_bytes;
      if (!part.manifest) continue;
      const std::size_t holding = part.manifest->holding_segments();
      for (std::size_t i = 0; i < part.manifest->segments.size(); ++i) {
        const SegmentRef& segment = part.manifest->segments[i];
        auto& references = segment.id.rank == kAnyRank
                               ? elsewhere_[segment.id.key]
                               : segments_[{segment.id.rank, segment.id.key}];
        if (references.empty()) total_bytes_ += segment.file_bytes;
        references.push_back({&version, &part, segment.file_bytes, i < holding});
      }
    }
  }
  // Members that no manifest lists any more are counted on by their stripes.
  for (const StripeView& stripe : view_.stripes().all())
    for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
      if (const SegmentId id = stripe.member(seat);
          id.rank != kAnyRank && uses_.of(id) == SegmentUse::needed)
        segments_.try_emplace({id.rank, id.key});
  // Blocks elsewhere may be in files that no manifest lists.
  for (const auto& [key, references] : elsewhere_)
    for (const BlockSource& source : sources_.of({key, kAnyRank}))
      segments_.try_emplace({source.id.rank, key});
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    for (const FoundFile& file : view_.nodes()[node].files) {
      node_of_file_.emplace(file.name, node);
      const bool copy = file.parsed && file.parsed->kind == format::NameKind::copy &&
                        segments_.contains({file.parsed->rank, file.parsed->key});
      const bool shard = file.parsed && file.parsed->kind == format::NameKind::shard;
      if (copy || shard) total_bytes_ += file.bytes;
    }
  }
}

/// A manifest that was retired meanwhile is nullptr.
Result<std::shared_ptr<const Manifest>> StoreCheck::load(const Reference& reference) {
  auto loaded = manifests_.load(reference.version->key, *reference.part);
  if (loaded || loaded.error().code() != Code::not_found) return loaded;
  gone_.insert(reference.version->key);
  return std::shared_ptr<const Manifest>();
}

Result<void> StoreCheck::want_elsewhere() {
  for (const auto& [key, references] : elsewhere_)
    for (const Reference& reference : references) {
      BELAY_ASSIGN(const auto manifest, load(reference));
      if (manifest) elsewhere_blocks_.want(*manifest);
    }
  return {};
}

void StoreCheck::advance(std::uint64_t bytes) {
  done_bytes_ = std::min(done_bytes_ + bytes, total_bytes_);
  progress_(done_bytes_, total_bytes_);
}

void StoreCheck::count(const AuditedFile& audited) {
  if (!audited.file) return;
  ++report_.files;
  report_.bytes += audited.file->file_bytes();
  report_.blocks += audited.file->blocks().size();
}

std::string StoreCheck::directory_of(const SegmentId& id, std::size_t guess) const {
  const auto found = node_of_file_.find(format::segment_name(id));
  return view_.nodes()[found == node_of_file_.end() ? guess : found->second].directory;
}

Verdict StoreCheck::audit(const SegmentId& id, const std::vector<Reference>& references) {
  const std::size_t node = references.empty() ? 0 : references.front().part->node;
  const auto seat = view_.stripes().of(id);
  std::optional<std::uint64_t> file_bytes;
  if (!references.empty())
    file_bytes = references.front().file_bytes;
  else if (seat)
    file_bytes = seat->stripe->stripe.members[seat->seat].file_bytes;
  const auto read = [&](const BlockSource& source) {
    auto audited = AuditedFile::read(view_, *audit_, source, file_bytes,
                                     [this](std::uint64_t n) { advance(n); });
    if (source.kind != FileKind::shard) count(audited);
    if (!audited.lost) elsewhere_blocks_.find_in(*audited.file, id, audited.bad_offsets);
    return audited;
  };
  Verdict verdict{.segment = read({node, id, FileKind::segment}),
                  .copies = {},
                  .told_offsets = {},
                  .equal_offsets = {}};
  const bool good = !verdict.segment.lost && verdict.segment.bad.empty();
  for (const BlockSource& source : sources_.of(id))
    if (source.kind == FileKind::copy || (source.kind == FileKind::shard && !good))
      verdict.copies.push_back(read(source));
  return verdict;
}

Result<void> StoreCheck::check_segment(const SegmentId& id,
                                       const std::vector<Reference>& references) {
  std::uint64_t all_bytes = references.empty() ? 0 : references.front().file_bytes;
  const std::uint64_t done_before = done_bytes_;
  Verdict verdict = audit(id, references);
  for (const Reference& reference : references)
    if (reference.holds) BELAY_TRY(check_reference(id, reference, verdict));
  // A file that nobody counts on may be unfinished.
  const bool listed = !references.empty() || uses_.of(id) == SegmentUse::needed;
  if (listed)
    add_segment_damage(verdict, std::any_of(references.begin(), references.end(),
                                            [](const Reference& r) { return r.holds; }));
  for (const AuditedFile& copy : verdict.copies) {
    if (copy.source.kind == FileKind::shard) continue;
    if (copy.file) all_bytes += copy.file->file_bytes();
    auto flaw = listed ? copy.damage(view_) : std::nullopt;
    if (flaw) report_.flaws.push_back(*std::move(flaw));
  }
  done_bytes_ = done_before;
  advance(all_bytes);
  return {};
}

/// Why nothing in the segment can be used for this manifest; unset: it can.
std::optional<Error> StoreCheck::loss_for(const Manifest& manifest, const SegmentRef& segment,
                                          const AuditedFile& audited) const {
  if (audited.lost) return audited.lost;
  if (!has_same_hash(*audited.file, manifest))
    return Error(Code::corruption, "has other fingerprints than the manifest that counts on it");
  if (segment.file_bytes != audited.file->file_bytes())
    return Error(Code::corruption, fmt::format("has {} bytes instead of {}",
                                               audited.file->file_bytes(), segment.file_bytes));
  return {};
}

void StoreCheck::add_region(Flaw flaw, const RegionRecord& region, std::uint64_t blocks,
                            std::string reason) {
  flaw.region = region.name;
  flaw.blocks = blocks;
  flaw.reason = std::move(reason);
  report_.flaws.push_back(std::move(flaw));
}

/// The copy that stands for a segment on the global tier; nullptr: there should be the segment.
const AuditedFile* StoreCheck::bundled_copy(const Verdict& verdict) const {
  if (!verdict.segment.lost || verdict.segment.lost->code() != Code::not_found) return nullptr;
  for (const AuditedFile& copy : verdict.copies) {
    if (copy.source.kind != FileKind::copy) continue;
    const FoundFile* file = view_.find_file(view_.nodes()[copy.source.node].directory,
                                            format::copy_name(copy.source.id));
    if (file != nullptr && file->bundled()) return &copy;
  }
  return nullptr;
}

/// Goes through the blocks that one manifest expects in the segment.
Result<void> StoreCheck::check_reference(const SegmentId& id, const Reference& reference,
                                         Verdict& verdict) {
  BELAY_ASSIGN(const auto manifest, load(reference));
  if (!manifest) return {};
  const auto ref = std::find_if(manifest->segments.begin(), manifest->segments.end(),
                                [&](const SegmentRef& s) { return s.id == id; });
  if (ref == manifest->segments.end()) return {};
  const auto lost = loss_for(*manifest, *ref, verdict.segment);
  Flaw flaw{.code = lost ? lost->code() : Code::corruption,
            .directory = directory_of(id, reference.part->node),
            .file = format::segment_name(id),
            .reason = lost ? lost->message() : std::string(),
            .version = reference.version->key,
            .rank = reference.part->rank};
  if (const AuditedFile* copy = bundled_copy(verdict)) {
    flaw.code = Code::corruption;
    flaw.directory = view_.nodes()[copy->source.node].directory;
    flaw.file = format::copy_name(id);
    flaw.reason = copy->lost ? copy->lost->message() : "lacks what the manifest counts on";
  }
  struct Counts {
    std::uint64_t lost = 0, damaged = 0, absent = 0;
  };
  std::map<const RegionRecord*, Counts> counts;
  const auto holder = static_cast<std::size_t>(ref - manifest->segments.begin());
  for_each_block(*manifest, holder, [&](const RegionRecord& region, const BlockName& name) {
    if (!lost && verdict.segment.has_good(name)) return;
    if (verdict.copies_have(*manifest, name)) return;
    const auto* bad = lost ? nullptr : verdict.segment.file->find(name.fingerprint, name.length);
    if (natural_.have(*audit_, *manifest, id.key, name)) {
      if (bad != nullptr) verdict.equal_offsets.insert(bad->offset);
      return;
    }
    Counts& here = counts[&region];
    if (lost) {
      ++here.lost;
    } else if (bad != nullptr) {
      ++here.damaged;
      verdict.told_offsets.insert(bad->offset);
    } else {
      ++here.absent;
    }
  });
  for (const RegionRecord& region : manifest->regions) {
    const auto found = counts.find(&region);
    if (found == counts.end()) continue;
    const auto& [missing, damaged, absent] = found->second;
    if (missing > 0) add_region(flaw, region, missing, flaw.reason);
    if (damaged > 0)
      add_region(flaw, region, damaged, "the content is not what the fingerprint names");
    if (absent > 0) add_region(flaw, region, absent, "does not hold what the manifest counts on");
  }
  // Without copies a version that counts on a lost segment does not exist, even if it needs no
  // block of it.
  const bool uncopied =
      lost && verdict.copies.empty() && counts.empty() && !has_natural_copies(*manifest, id.key);
  if (uncopied) report_.flaws.push_back(flaw);
  verdict.told = verdict.told || uncopied || !counts.empty();
  return {};
}

/// What is wrong with the segment itself, beyond what it costs versions. `holds`: blocks of
/// manifests, all of which have been looked for.
void StoreCheck::add_segment_damage(const Verdict& verdict, bool holds) {
  const AuditedFile& segment = verdict.segment;
  const SegmentId& id = segment.source.id;
  Flaw flaw{.directory = directory_of(id, segment.source.node),
            .file = format::segment_name(id),
            .rank = id.rank};
  if (segment.lost) {
    if (verdict.told || bundled_copy(verdict) != nullptr) return;
    flaw.code = segment.lost->code();
    const bool gone = flaw.code == Code::not_found;
    flaw.reason = gone ? "is missing" : segment.lost->message();
    const bool rebuilt = std::any_of(
        verdict.copies.begin(), verdict.copies.end(),
        [](const AuditedFile& copy) { return copy.source.kind == FileKind::shard && !copy.lost; });
    if (rebuilt)
      flaw.reason += "; its stripe gives back what versions need of it";
    else if (holds)
      flaw.reason += "; other files have what versions need of it";
    (gone ? report_.replaced : report_.flaws).push_back(std::move(flaw));
    return;
  }
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> reasons;  // first offset, count
  for (const store::StoredBlock& block : segment.bad) {
    if (verdict.told_offsets.contains(block.offset)) continue;
    const BlockName name{block.fingerprint, block.length};
    const auto copy = std::find_if(verdict.copies.begin(), verdict.copies.end(),
                                   [&](const AuditedFile& c) { return c.has_good(name); });
    const bool copied = copy != verdict.copies.end();
    const char* why =
        copied && copy->source.kind == FileKind::shard ? "but its stripe gives it back"
        : copied                                       ? "but a copy has it"
        : verdict.equal_offsets.contains(block.offset) ? "but another rank's segment has it"
        : elsewhere_blocks_.wants(*segment.file, name) ? "and other ranks need it"
                                                       : "but no version needs it";
    ++reasons.try_emplace(why, block.offset, 0).first->second.second;
  }
  for (const auto& [why, blocks] : reasons) {
    flaw.reason = fmt::format("the block at byte {} is damaged, {}", blocks.first, why);
    flaw.blocks = blocks.second;
    report_.flaws.push_back(flaw);
  }
}

/// Goes through the blocks that one manifest leaves to other ranks' segments of a version.
Result<void> StoreCheck::check_elsewhere(VersionKey key, const Reference& reference) {
  BELAY_ASSIGN(const auto manifest, load(reference));
  if (!manifest) return {};
  const auto ref =
      std::find_if(manifest->segments.begin(), manifest->segments.end(), [&](const SegmentRef& s) {
        return s.id == SegmentId{key, kAnyRank};
      });
  if (ref == manifest->segments.end()) return {};
  std::map<const RegionRecord*, std::uint64_t> counts;
  const auto holder = static_cast<std::size_t>(ref - manifest->segments.begin());
  for_each_block(*manifest, holder, [&](const RegionRecord& region, const BlockName& name) {
    if (!elsewhere_blocks_.segment_of(*manifest, *ref, name)) ++counts[&region];
  });
  if (counts.empty()) return {};
  const SegmentId suspected = suspect(view_, sources_, *manifest, *ref);
  const Flaw flaw{.code = Code::not_found,
                  .directory = directory_of(suspected, reference.part->node),
                  .file = format::segment_name(suspected),
                  .version = reference.version->key,
                  .rank = reference.part->rank};
  for (const RegionRecord& region : manifest->regions)
    if (const auto found = counts.find(&region); found != counts.end())
      add_region(flaw, region, found->second,
                 fmt::format("blocks of version {} of run {} that other ranks stored are in no "
                             "segment or copy",
                             key.version, key.run));
  return {};
}

/// A manifest that cannot be read may count on it, so that its damage is told, whoever it hurts.
void StoreCheck::check_doubtful(const BlockSource& source) {
  const auto audited = AuditedFile::read(view_, *audit_, source, {}, [](std::uint64_t) {});
  count(audited);
  auto flaw = audited.damage(view_);
  if (!flaw) return;
  flaw->reason += "; a manifest that cannot be read may count on it";
  report_.flaws.push_back(*std::move(flaw));
}

/// What the view found about segments is told again with regions.
void StoreCheck::add_flaws_of_view() {
  for (const Flaw& flaw : view_.all_flaws()) {
    const auto parsed = format::parse_name(flaw.file);
    const bool told = flaw.version && parsed && parsed->kind == format::NameKind::segment;
    if (!told) report_.flaws.push_back(flaw);
  }
}

Result<void> StoreCheck::check_shards() {
  BELAY_ASSIGN(auto found,
               audit_shards(view_, uses_, [this](std::uint64_t bytes) { advance(bytes); }));
  report_.files += found.files;
  report_.bytes += found.bytes;
  std::move(found.damaged.begin(), found.damaged.end(), std::back_inserter(report_.flaws));
  std::move(found.missing.begin(), found.missing.end(), std::back_inserter(report_.replaced));
  return {};
}

/// Segments, copies and shards that no readable manifest lists, and temporaries.
void StoreCheck::check_unlisted() {
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    for (const FoundFile& file : view_.nodes()[node].files) {
      if (!file.regular || file.bundled()) continue;
      const bool temporary =
          file.parsed ? file.parsed->temporary : file.name != std::string(format::kSettledName);
      const bool copy = file.parsed && file.parsed->kind == format::NameKind::copy;
      const bool segment = file.parsed && file.parsed->kind == format::NameKind::segment;
      const bool shard = file.parsed && file.parsed->kind == format::NameKind::shard;
      if (!temporary && !segment && !copy && !shard) continue;
      const SegmentId id{file.parsed ? file.parsed->key : VersionKey{},
                         file.parsed ? file.parsed->rank : 0};
      const SegmentUse use = temporary ? SegmentUse::unneeded
                             : shard   ? uses_.of_shard(id)
                                       : uses_.of(id);
      if (use == SegmentUse::unneeded)
        report_.leftovers.push_back({node, file.name, file.bytes, temporary});
      if (use == SegmentUse::unknown && !shard && !view_.identities().empty())
        check_doubtful({node, id, copy ? FileKind::copy : FileKind::segment});
    }
  }
}

void StoreCheck::judge_versions() {
  for (const VersionView& version : view_.versions()) {
    const auto concerns = [&](const Flaw& flaw) { return flaw.version == version.key; };
    CheckedVersion checked{version.key, version.state};
    if (std::any_of(report_.flaws.begin(), report_.flaws.end(), concerns))
      checked.state = VersionState::damaged;
    // A running job may have retired it while it was read; then nothing of it is a flaw.
    const bool gone = gone_.contains(version.key) ||
                      (checked.state != VersionState::whole &&
                       std::any_of(version.parts.begin(), version.parts.end(), [&](const auto& p) {
                         return !view_.still_listed(p, version.key);
                       }));
    if (gone)
      std::erase_if(report_.flaws, concerns);
    else
      report_.versions.push_back(checked);
  }
}

Result<CheckReport> StoreCheck::run(unsigned threads) {
  BELAY_ASSIGN(audit_, SegmentAudit::make(threads));
  plan();
  progress_(0, total_bytes_);
  add_flaws_of_view();
  BELAY_TRY(want_elsewhere());
  for (const VersionView& version : view_.versions())
    for (const PartView& part : version.parts) {
      if (part.manifest) ++report_.files;
      if (part.manifest) report_.bytes += part.manifest_bytes;
      advance(part.manifest_bytes);
    }
  for (const auto& [place, references] : segments_)
    BELAY_TRY(check_segment({std::get<1>(place), std::get<0>(place)}, references));
  for (const auto& [key, references] : elsewhere_)
    for (const Reference& reference : references) BELAY_TRY(check_elsewhere(key, reference));
  BELAY_TRY(check_shards());
  check_unlisted();
  judge_versions();
  view_.name_bundles(report_.flaws);
  return std::move(report_);
}

}  // namespace

const CheckedVersion* CheckReport::newest_whole() const {
  for (const CheckedVersion& version : versions)
    if (version.state == VersionState::whole) return &version;
  return nullptr;
}

Result<CheckReport> check_store(const StoreView& view, unsigned threads,
                                const CheckProgress& progress) {
  return within_memory([&] { return StoreCheck(view, progress).run(threads); });
}

}  // namespace belay::inspect
