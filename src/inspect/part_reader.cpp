// SPDX-License-Identifier: Apache-2.0
#include "inspect/part_reader.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "format/wire.hpp"
#include "inspect/region_change.hpp"
#include "inspect/source_files.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

namespace belay::inspect {
namespace {

constexpr std::uint64_t kRunBytes = std::uint64_t{4} << 20;

std::array<bool, 256> holders_of(const Manifest& manifest, const std::string& name) {
  std::array<bool, 256> used{};
  for (const RegionRecord& region : manifest.regions) {
    if (!name.empty() && region.name != name) continue;
    const std::uint64_t end = region.first_block + manifest.blocks_of(region);
    for (std::uint64_t i = region.first_block; i < end; ++i) used[manifest.holders[i]] = true;
  }
  return used;
}

}  // namespace

/// Blocks [first, first + count) of a region, which lie one after the other in one file.
struct PartReader::BlockRun {
  store::SegmentFile* segment = nullptr;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t begin = 0;  ///< in the file
  std::uint64_t end = 0;
};

Result<PartReader> PartReader::open(const StoreView& view, const VersionView& version,
                                    const PartView& part, const std::string& region) {
  PartReader reader(view);
  BELAY_ASSIGN(reader.manifest_, view.load(part, version.key));
  const Manifest& manifest = reader.manifest_;
  if (!region.empty() && find_region(manifest, region) == nullptr)
    return fail(Code::not_found, "rank {} has no region {}", part.rank, in_quotes(region));
  reader.hasher_ = fingerprint::make_hasher(manifest.hash, manifest.origin.seed);
  if (!reader.hasher_)
    return fail(Code::unsupported, "this machine cannot compute the hash {}",
                fingerprint::name_of(manifest.hash));
  const auto used = holders_of(manifest, region);
  const BlockSources sources(view);
  const std::size_t holding = manifest.holding_segments();
  for (std::size_t i = 0; i < holding; ++i)
    if (used[i] && manifest.segments[i].id.rank == kAnyRank)
      reader.hold_elsewhere(sources, i);
    else if (used[i])
      BELAY_TRY(reader.hold_own(sources, part, i));
  if (!view.still_listed(part, version.key))
    return fail(Code::not_found, "version {} was removed meanwhile", version.key.version);
  return reader;
}

void PartReader::hold(Source& source) const {
  if (source.file || source.lost) return;
  auto held = hold_source(*view_, source.where);
  if (held)
    source.file = *std::move(held);
  else
    source.lost = held.error();
}

/// Holds it and loads its index, if that was not done yet.
void PartReader::load(Source& source) const {
  hold(source);
  if (source.lost || source.file->loaded()) return;
  auto loaded = source.file->load(manifest_.origin.store, source.file_bytes);
  if (!loaded)
    source.lost = loaded.error();
  else if (!has_same_hash(*source.file, manifest_))
    source.lost = Error(Code::corruption, source.file->where() + ": has other fingerprints than " +
                                              "the manifest that counts on it");
  else
    source.file->sort_blocks();
}

/// The segment, or all its copies if it is gone.
Result<void> PartReader::hold_own(const BlockSources& sources, const PartView& part,
                                  std::size_t holder) {
  const SegmentRef& segment = manifest_.segments[holder];
  std::vector<Source>& own = sources_[holder];
  // Through the part's node all others are looked at as well.
  const BlockSource original{part.node, segment.id, FileKind::segment};
  own.push_back({original, segment.file_bytes, {}, {}});
  for (const BlockSource& source : sources.of(segment.id))
    if (source.kind != FileKind::segment) own.push_back({source, segment.file_bytes, {}, {}});
  hold(own.front());
  const bool natural = has_natural_copies(manifest_, segment.id.key);
  if (!own.front().lost) {
    // Blocks of it that are damaged may be in segments of other ranks.
    for (const BlockSource& source : sources.files_of({segment.id.key, kAnyRank}))
      if (natural && source.id != segment.id) own.push_back({source, {}, {}, {}});
    return {};
  }
  if (natural) {
    hold_elsewhere(sources, holder);
    return {};
  }
  bool held = false;
  for (std::size_t i = 1; i < own.size(); ++i) {
    hold(own[i]);
    held = held || own[i].file;
  }
  if (!held) return Unexpected(*own.front().lost);
  return {};
}

/// As many files as it takes to find all blocks: one for each rank would be too many.
void PartReader::hold_elsewhere(const BlockSources& sources, std::size_t holder) {
  std::unordered_set<BlockName, BlockNameHash> wanted;
  for_each_block(manifest_, holder,
                 [&](const RegionRecord&, const BlockName& name) { wanted.insert(name); });
  std::vector<Source>& held = sources_[holder];
  for (const BlockSource& where : sources.of({manifest_.segments[holder].id.key, kAnyRank})) {
    held.push_back({where, {}, {}, {}});
    if (wanted.empty()) continue;
    Source& source = held.back();
    load(source);
    if (source.lost) continue;
    const std::size_t before = wanted.size();
    for (const store::StoredBlock& block : source.file->blocks())
      wanted.erase({block.fingerprint, block.length});
    if (wanted.size() == before) source.file.reset();
  }
}

Result<PartReader::BlockRun> PartReader::find_run(Source& source, const RegionRecord& region,
                                                  std::uint64_t first, std::uint64_t last) {
  load(source);
  if (source.lost) return Unexpected(*source.lost);
  BlockRun run{.segment = &*source.file, .first = first};
  const std::uint8_t holder = manifest_.holders[region.first_block + first];
  for (std::uint64_t i = first; i < last; ++i) {
    if (manifest_.holders[region.first_block + i] != holder) break;
    const Fingerprint& fingerprint = manifest_.fingerprints[region.first_block + i];
    const store::StoredBlock* block =
        run.segment->find(fingerprint, manifest_.length_of(region, i));
    if (block == nullptr && run.count > 0) break;
    if (block == nullptr)
      return fail(Code::corruption, "{}: does not hold block {} of region {} (rank {})",
                  run.segment->where(), i, in_quotes(region.name), manifest_.origin.rank);
    if (run.count == 0) run.begin = block->offset;
    if (run.count > 0 && (block->offset != run.end || block->end() - run.begin > kRunBytes)) break;
    run.end = block->end();
    ++run.count;
  }
  return run;
}

Result<void> PartReader::copy_run(const RegionRecord& region, const BlockRun& run,
                                  std::uint64_t offset, std::span<std::byte> to) {
  const std::uint64_t begin = run.begin / os::kDirectAlignment * os::kDirectAlignment;
  const std::uint64_t end = format::round_up(run.end, os::kDirectAlignment);
  const auto pages = buffer_.bytes().first(end - begin);
  BELAY_ASSIGN(const std::size_t got, run.segment->file().read(begin, pages));
  if (begin + got < run.end)
    return fail(Code::corruption, "{}: ends at byte {}", run.segment->where(), begin + got);
  std::uint64_t at = run.begin - begin;
  for (std::uint64_t i = run.first; i < run.first + run.count; ++i) {
    const std::uint32_t length = manifest_.length_of(region, i);
    const auto content = pages.subspan(at, length);
    if (hasher_->hash(content) != manifest_.fingerprints[region.first_block + i])
      return fail(Code::corruption,
                  "{}: the block at byte {} (region {}, rank {}) is damaged: its content is not "
                  "what its fingerprint names",
                  run.segment->where(), begin + at, in_quotes(region.name), manifest_.origin.rank);
    at += length;
    // The first and the last block may be wanted in part.
    const std::uint64_t block_begin = i * manifest_.block_bytes;
    const std::uint64_t from = std::max(offset, block_begin);
    const std::uint64_t until = std::min(offset + to.size(), block_begin + length);
    if (from >= until) continue;
    std::memcpy(to.data() + (from - offset), content.data() + (from - block_begin), until - from);
  }
  return {};
}

/// Reads some of the blocks [first, last) from the first file that has them, and says how many.
Result<std::uint64_t> PartReader::read_run(const RegionRecord& region, std::uint64_t first,
                                           std::uint64_t last, std::uint64_t offset,
                                           std::span<std::byte> to) {
  std::optional<Error> error;
  std::uint64_t most = 0;
  for (Source& source : sources_.at(manifest_.holders[region.first_block + first])) {
    const auto run = find_run(source, region, first, last);
    const auto copied =
        run ? copy_run(region, *run, offset, to) : Result<void>(Unexpected(run.error()));
    if (copied) return run->count;
    if (run) most = std::max(most, run->count);
    if (!error) error = copied.error();
  }
  // Files may have damage in different blocks.
  if (most > 1) return read_run(region, first, first + 1, offset, to);
  if (error) return Unexpected(*error);
  return fail(Code::corruption, "block {} of region {} (rank {}) is in no segment or copy", first,
              in_quotes(region.name), manifest_.origin.rank);
}

Result<void> PartReader::read(const RegionRecord& region, std::uint64_t offset,
                              std::span<std::byte> to) {
  if (to.empty()) return {};
  if (buffer_.size() == 0) {
    const std::uint64_t most = kRunBytes + kMaxBlockBytes + 2 * os::kDirectAlignment;
    BELAY_ASSIGN(buffer_, os::AlignedMemory::allocate(most));
  }
  const std::uint64_t last = (offset + to.size() - 1) / manifest_.block_bytes + 1;
  for (std::uint64_t block = offset / manifest_.block_bytes; block < last;) {
    BELAY_ASSIGN(const std::uint64_t count, read_run(region, block, last, offset, to));
    block += count;
  }
  return {};
}

}  // namespace belay::inspect
