// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_check.hpp"

#include "base/try.hpp"
#include "inspect/manifest_cache.hpp"
#include "inspect/segment_audit.hpp"

#include <algorithm>
#include <map>
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
};

/// What became of one segment.
struct Verdict {
  std::optional<Error> lost;  ///< the file as a whole: nothing in it can be trusted
  std::set<std::uint64_t> bad_offsets;
  std::vector<store::StoredBlock> bad;
};

class StoreCheck {
 public:
  StoreCheck(const StoreView& view, const CheckProgress& progress)
      : view_(view), progress_(progress), manifests_(view) {}

  Result<CheckReport> run(unsigned threads);

 private:
  void plan();
  void advance(std::uint64_t bytes);
  Result<void> check_segment(const SegmentId& id, const std::vector<Reference>& references);
  Result<void> check_references(const SegmentId& id, const std::vector<Reference>& references,
                                const store::SegmentFile* segment, const Verdict& verdict);
  Result<void> check_reference(const SegmentId& id, const Reference& reference,
                               const store::SegmentFile* segment, const Verdict& verdict,
                               std::set<std::uint64_t>& missed);
  Result<void> check_doubtful_segment(std::size_t node, const SegmentId& id);
  void add_unreferenced(const SegmentId& id, const std::string& directory, const Verdict& verdict,
                        const std::set<std::uint64_t>& missed);
  std::string directory_of(const SegmentId& id, std::size_t guess) const;
  void add_flaws_of_view();
  Result<void> check_unlisted();
  void judge_versions();

  const StoreView& view_;
  const CheckProgress& progress_;
  ManifestCache manifests_;
  std::optional<SegmentAudit> audit_;
  /// By rank first, so that the manifests of one rank serve for all its segments.
  std::map<std::tuple<Rank, VersionKey>, std::vector<Reference>> segments_;
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
      for (const SegmentRef& segment : part.manifest->segments) {
        auto& references = segments_[{segment.id.rank, segment.id.key}];
        if (references.empty()) total_bytes_ += segment.file_bytes;
        references.push_back({&version, &part, segment.file_bytes});
      }
    }
  }
  for (std::size_t node = 0; node < view_.nodes().size(); ++node)
    for (const FoundFile& file : view_.nodes()[node].files) node_of_file_.emplace(file.name, node);
}

void StoreCheck::advance(std::uint64_t bytes) {
  done_bytes_ = std::min(done_bytes_ + bytes, total_bytes_);
  progress_(done_bytes_, total_bytes_);
}

std::string StoreCheck::directory_of(const SegmentId& id, std::size_t guess) const {
  const auto found = node_of_file_.find(format::segment_name(id));
  return view_.nodes()[found == node_of_file_.end() ? guess : found->second].directory;
}

Result<void> StoreCheck::check_segment(const SegmentId& id,
                                       const std::vector<Reference>& references) {
  const Reference& first = references.front();
  const std::uint64_t done_before = done_bytes_;
  Verdict verdict;
  auto segment = store::SegmentFile::open(view_.tier(first.part->node), id,
                                          first.part->manifest->origin.store, first.file_bytes);
  if (segment) {
    ++report_.files;
    report_.bytes += segment->file_bytes();
    report_.blocks += segment->blocks().size();
    auto bad = audit_->find_bad_blocks(*segment, [this](std::uint64_t n) { advance(n); });
    if (bad) {
      verdict.bad = *std::move(bad);
      for (const store::StoredBlock& block : verdict.bad) verdict.bad_offsets.insert(block.offset);
      segment->sort_blocks();
    } else {
      verdict.lost = bad.error();
    }
  } else {
    verdict.lost = segment.error();
  }
  const bool readable = !verdict.lost;
  BELAY_TRY(check_references(id, references, readable ? &*segment : nullptr, verdict));
  done_bytes_ = done_before;
  advance(first.file_bytes);
  return {};
}

Result<void> StoreCheck::check_references(const SegmentId& id,
                                          const std::vector<Reference>& references,
                                          const store::SegmentFile* segment,
                                          const Verdict& verdict) {
  std::set<std::uint64_t> missed;  // offsets of bad blocks that somebody needs
  for (const Reference& reference : references)
    BELAY_TRY(check_reference(id, reference, segment, verdict, missed));
  const std::string directory = directory_of(id, references.front().part->node);
  add_unreferenced(id, directory, verdict, missed);
  return {};
}

/// Goes through the blocks that one manifest expects in the segment.
Result<void> StoreCheck::check_reference(const SegmentId& id, const Reference& reference,
                                         const store::SegmentFile* segment, const Verdict& verdict,
                                         std::set<std::uint64_t>& missed) {
  auto loaded = manifests_.load(reference.version->key, *reference.part);
  if (!loaded && loaded.error().code() == Code::not_found) {
    gone_.insert(reference.version->key);
    return {};
  }
  if (!loaded) return Unexpected(loaded.error());
  const Manifest& manifest = **loaded;
  std::optional<Error> lost = verdict.lost;
  const auto ref = std::find_if(manifest.segments.begin(), manifest.segments.end(),
                                [&](const SegmentRef& s) { return s.id == id; });
  if (ref == manifest.segments.end()) return {};
  if (segment != nullptr && (segment->header().hash != manifest.hash ||
                             segment->header().origin.seed != manifest.origin.seed))
    lost = Error(Code::corruption, "has other fingerprints than the manifest that counts on it");
  if (segment != nullptr && ref->file_bytes != segment->file_bytes())
    lost = Error(Code::corruption,
                 fmt::format("has {} bytes instead of {}", segment->file_bytes(), ref->file_bytes));
  const auto holder = static_cast<std::uint8_t>(ref - manifest.segments.begin());
  const Flaw flaw{.code = lost ? lost->code() : Code::corruption,
                  .directory = directory_of(id, reference.part->node),
                  .file = format::segment_name(id),
                  .reason = lost ? lost->message() : std::string(),
                  .version = reference.version->key,
                  .rank = reference.part->rank};
  bool told = false;
  for (const RegionRecord& region : manifest.regions) {
    std::uint64_t damaged = 0;
    std::uint64_t absent = 0;
    std::uint64_t held = 0;
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      if (manifest.holders[region.first_block + i] != holder) continue;
      ++held;
      if (lost || segment == nullptr) continue;
      const store::StoredBlock* block = segment->find(manifest.fingerprints[region.first_block + i],
                                                      manifest.length_of(region, i));
      if (block == nullptr) ++absent;
      if (block == nullptr || !verdict.bad_offsets.contains(block->offset)) continue;
      ++damaged;
      missed.insert(block->offset);
    }
    const auto add = [&](std::uint64_t count, std::string reason) {
      if (count == 0) return;
      Flaw one = flaw;
      one.region = region.name;
      one.blocks = count;
      one.reason = std::move(reason);
      report_.flaws.push_back(std::move(one));
      told = true;
    };
    if (lost) add(held, lost->message());
    add(damaged, "the content is not what the fingerprint names");
    add(absent, "does not hold what the manifest counts on");
  }
  // A version that counts on a lost segment does not exist, even if it needs no block of it.
  if (lost && !told) report_.flaws.push_back(flaw);
  return {};
}

void StoreCheck::add_unreferenced(const SegmentId& id, const std::string& directory,
                                  const Verdict& verdict, const std::set<std::uint64_t>& missed) {
  std::uint64_t count = 0;
  std::uint64_t first = 0;
  for (const store::StoredBlock& block : verdict.bad) {
    if (missed.contains(block.offset)) continue;
    if (count++ == 0) first = block.offset;
  }
  if (count == 0) return;
  report_.flaws.push_back(
      {.code = Code::corruption,
       .directory = directory,
       .file = format::segment_name(id),
       .reason = fmt::format("the block at byte {} is damaged, but no version needs it", first),
       .blocks = count});
}

/// A manifest that cannot be read may count on it, so that its damage is told, whoever it hurts.
Result<void> StoreCheck::check_doubtful_segment(std::size_t node, const SegmentId& id) {
  Flaw flaw{.directory = view_.nodes()[node].directory, .file = format::segment_name(id)};
  auto segment =
      store::SegmentFile::open(view_.tier(node), id, view_.identities().front().store, {});
  auto bad = segment ? audit_->find_bad_blocks(*segment, [](std::uint64_t) {})
                     : Result<std::vector<store::StoredBlock>>(Unexpected(segment.error()));
  if (!bad && bad.error().code() == Code::not_found) return {};  // retired meanwhile
  if (segment) ++report_.files;
  if (segment) report_.bytes += segment->file_bytes();
  if (segment) report_.blocks += segment->blocks().size();
  if (bad && bad->empty()) return {};
  flaw.code = bad ? Code::corruption : bad.error().code();
  flaw.blocks = bad ? bad->size() : 0;
  flaw.reason = bad ? fmt::format(
                          "the block at byte {} is damaged; a manifest that cannot be read "
                          "may count on it",
                          bad->front().offset)
                    : bad.error().message() + "; a manifest that cannot be read may count on it";
  flaw.rank = id.rank;
  report_.flaws.push_back(std::move(flaw));
  return {};
}

/// What the view found about segments is told again with regions.
void StoreCheck::add_flaws_of_view() {
  for (const Flaw& flaw : view_.all_flaws()) {
    const auto parsed = format::parse_name(flaw.file);
    const bool told = flaw.version && parsed && parsed->kind == format::NameKind::segment;
    if (!told) report_.flaws.push_back(flaw);
  }
}

/// Segments that no readable manifest lists, and temporaries.
Result<void> StoreCheck::check_unlisted() {
  const SegmentUses uses(view_);
  for (std::size_t node = 0; node < view_.nodes().size(); ++node) {
    for (const FoundFile& file : view_.nodes()[node].files) {
      if (!file.regular) continue;
      const bool temporary =
          file.parsed ? file.parsed->temporary : file.name != std::string(format::kSettledName);
      const bool segment =
          file.parsed && !temporary && file.parsed->kind == format::NameKind::segment;
      if (!temporary && !segment) continue;
      const SegmentId id{file.parsed ? file.parsed->key : VersionKey{},
                         file.parsed ? file.parsed->rank : 0};
      const SegmentUse use = temporary ? SegmentUse::unneeded : uses.of(id);
      if (use == SegmentUse::unneeded)
        report_.leftovers.push_back({node, file.name, file.bytes, temporary});
      if (use == SegmentUse::unknown && !view_.identities().empty())
        BELAY_TRY(check_doubtful_segment(node, id));
    }
  }
  return {};
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
  for (const VersionView& version : view_.versions())
    for (const PartView& part : version.parts) {
      if (part.manifest) ++report_.files;
      if (part.manifest) report_.bytes += part.manifest_bytes;
      advance(part.manifest_bytes);
    }
  for (const auto& [place, references] : segments_)
    BELAY_TRY(check_segment({std::get<1>(place), std::get<0>(place)}, references));
  BELAY_TRY(check_unlisted());
  judge_versions();
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
