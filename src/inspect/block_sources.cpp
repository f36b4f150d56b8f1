// SPDX-License-Identifier: Apache-2.0
#include "inspect/block_sources.hpp"

#include "base/try.hpp"
#include "inspect/source_files.hpp"
#include "inspect/stripes.hpp"

#include <algorithm>
#include <unordered_set>

namespace belay::inspect {
namespace {

/// The size of a segment that must be there. not_found or corruption if it is not.
Result<void> check_size(const StoreView& view, std::size_t node, const SegmentRef& segment) {
  const std::string name = format::segment_name(segment.id);
  store::Tier& tier = view.tier(node);
  auto bytes = tier.touch(name);
  if (!bytes && bytes.error().code() == Code::not_found) return fail(Code::not_found, "is missing");
  if (!bytes) return Unexpected(bytes.error());
  if (*bytes != segment.file_bytes)
    return fail(Code::corruption, "{}/{}: has {} bytes instead of {}", tier.place(), name, *bytes,
                segment.file_bytes);
  return {};
}

class PartSearch {
 public:
  PartSearch(const StoreView& view, BlockSources& sources, VersionKey key, const PartView& part)
      : view_(view), sources_(sources), key_(key), part_(part) {}

  std::vector<Flaw> run() {
    const std::size_t holding = part_.manifest->holding_segments();
    for (std::size_t i = 0; i < holding; ++i) {
      if (part_.manifest->segments[i].id.rank == kAnyRank)
        look_elsewhere(i);
      else
        look_for(i);
    }
    return std::move(flaws_);
  }

 private:
  void look_for(std::size_t holder) {
    const SegmentRef& segment = part_.manifest->segments[holder];
    const auto there = check_size(view_, part_.node, segment);
    if (there) return;
    const auto sources = sources_.of(segment.id);
    const bool copied = has_natural_copies(*part_.manifest, segment.id.key) ||
                        std::any_of(sources.begin(), sources.end(), [](const BlockSource& source) {
                          return source.kind != FileKind::segment;
                        });
    const auto lacking = copied ? lacking_of(holder) : std::nullopt;
    if (lacking == 0u) return;
    add(there.error().code(), segment.id,
        there.error().message() +
            (lacking ? fmt::format(", and other files lack {} of its blocks", *lacking) : ""));
  }

  void look_elsewhere(std::size_t holder) {
    const Manifest& manifest = *part_.manifest;
    const SegmentRef& elsewhere = manifest.segments[holder];
    const auto counted_on = [&](const SegmentRef& segment) {
      return segment.id.key == elsewhere.id.key && segment.id.rank != kAnyRank &&
             segment.id.rank != manifest.origin.rank;
    };
    bool listed = false;
    bool there = true;
    for (const SegmentRef& segment : manifest.segments) {
      if (!counted_on(segment)) continue;
      listed = true;
      there = there && sources_.segment_bytes(view_, segment.id) == segment.file_bytes;
    }
    if (listed && there) return;
    const auto lacking = lacking_of(holder);
    if (lacking == 0u) return;
    add(Code::not_found, suspect(view_, sources_, manifest, elsewhere),
        fmt::format("of version {} of run {}, {} blocks that other ranks stored are in no segment "
                    "or copy",
                    elsewhere.id.key.version, elsewhere.id.key.run, lacking.value_or(0)));
  }

  /// Unset: the manifest has gone meanwhile, or cannot be read any more.
  std::optional<std::uint64_t> lacking_of(std::size_t holder) {
    if (!loaded_) {
      auto manifest = view_.load(part_, key_);
      if (!manifest) return {};
      loaded_ = *std::move(manifest);
    }
    return count_lacking(view_, sources_, *loaded_, holder);
  }

  void add(Code code, const SegmentId& id, std::string reason) {
    flaws_.push_back({.code = code,
                      .directory = view_.nodes()[part_.node].directory,
                      .file = format::segment_name(id),
                      .reason = std::move(reason),
                      .version = key_,
                      .rank = part_.rank});
  }

  const StoreView& view_;
  BlockSources& sources_;
  VersionKey key_;
  const PartView& part_;
  std::optional<Manifest> loaded_;  ///< with its block arrays
  std::vector<Flaw> flaws_;
};

}  // namespace

BlockSources::BlockSources(const StoreView& view) {
  const auto& nodes = view.nodes();
  for (const auto& [name_kind, kind] : {std::pair(format::NameKind::segment, FileKind::segment),
                                        std::pair(format::NameKind::copy, FileKind::copy)})
    for (std::size_t node = 0; node < nodes.size(); ++node)
      for (const FoundFile& file : nodes[node].files) {
        if (!file.regular || !file.parsed || file.parsed->temporary) continue;
        const SegmentId id{file.parsed->key, file.parsed->rank};
        if (file.parsed->kind == name_kind) files_[id].push_back({node, id, kind});
      }
  for (const StripeView& stripe : view.stripes().all())
    for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
      if (const SegmentId id = stripe.member(seat); id.rank != kAnyRank)
        files_[id].push_back({0, id, FileKind::shard});
}

std::vector<BlockSource> BlockSources::of(const SegmentId& id) const {
  std::vector<BlockSource> sources;
  const SegmentId first = id.rank == kAnyRank ? SegmentId{id.key, 0} : id;
  const auto end = files_.upper_bound(id);
  for (auto entry = files_.lower_bound(first); entry != end; ++entry)
    sources.insert(sources.end(), entry->second.begin(), entry->second.end());
  std::stable_sort(sources.begin(), sources.end(),
                   [](const BlockSource& a, const BlockSource& b) { return a.kind < b.kind; });
  return sources;
}

std::vector<BlockSource> BlockSources::files_of(const SegmentId& id) const {
  auto sources = of(id);
  std::erase_if(sources, [](const BlockSource& s) { return s.kind == FileKind::shard; });
  return sources;
}

std::optional<std::uint64_t> BlockSources::segment_bytes(const StoreView& view,
                                                         const SegmentId& id) {
  const auto [entry, is_new] = bytes_.try_emplace(id);
  const auto file = files_.find(id);
  if (!is_new || file == files_.end()) return entry->second;
  for (const BlockSource& source : file->second) {
    if (source.kind != FileKind::segment || entry->second) continue;
    if (auto bytes = view.tier(source.node).touch(format::segment_name(id))) entry->second = *bytes;
  }
  return entry->second;
}

void for_each_block(const Manifest& manifest, std::size_t holder,
                    const std::function<void(const RegionRecord&, const BlockName&)>& look) {
  for (const RegionRecord& region : manifest.regions) {
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i)
      if (manifest.holders[region.first_block + i] == holder)
        look(region,
             {manifest.fingerprints[region.first_block + i], manifest.length_of(region, i)});
  }
}

bool has_same_hash(const store::SegmentFile& file, const Manifest& manifest) {
  return file.header().hash == manifest.hash && file.header().origin.seed == manifest.origin.seed;
}

bool has_natural_copies(const Manifest& manifest, VersionKey key) {
  const auto others = std::span(manifest.segments)
                          .subspan(std::min(manifest.holding_segments(), manifest.segments.size()));
  return std::any_of(others.begin(), others.end(),
                     [&](const SegmentRef& other) { return other.id.key == key; });
}

std::uint64_t count_lacking(const StoreView& view, const BlockSources& sources,
                            const Manifest& manifest, std::size_t holder) {
  std::unordered_set<BlockName, BlockNameHash> wanted;
  for_each_block(manifest, holder,
                 [&](const RegionRecord&, const BlockName& name) { wanted.insert(name); });
  const SegmentRef& segment = manifest.segments[holder];
  for (const BlockSource& source : sources.of({segment.id.key, kAnyRank})) {
    if (wanted.empty()) break;
    const auto file_bytes = source.id == segment.id
                                ? std::optional<std::uint64_t>(segment.file_bytes)
                                : std::optional<std::uint64_t>{};
    const auto file = open_source(view, source, manifest.origin.store, file_bytes);
    if (!file || !has_same_hash(*file, manifest)) continue;
    for (const store::StoredBlock& block : file->blocks())
      wanted.erase({block.fingerprint, block.length});
  }
  return wanted.size();
}

std::vector<Flaw> find_missing(const StoreView& view, BlockSources& sources, VersionKey key,
                               const PartView& part) {
  return PartSearch(view, sources, key, part).run();
}

SegmentId suspect(const StoreView& view, BlockSources& sources, const Manifest& manifest,
                  const SegmentRef& elsewhere) {
  std::optional<SegmentId> first;
  for (std::size_t i = manifest.holding_segments(); i < manifest.segments.size(); ++i) {
    const SegmentRef& segment = manifest.segments[i];
    if (segment.id.key != elsewhere.id.key) continue;
    if (sources.segment_bytes(view, segment.id) != segment.file_bytes) return segment.id;
    if (!first) first = segment.id;
  }
  return first.value_or(SegmentId{elsewhere.id.key, manifest.origin.rank});
}

}  // namespace belay::inspect
