// SPDX-License-Identifier: Apache-2.0
#include "inspect/part_reader.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "format/wire.hpp"
#include "inspect/region_change.hpp"

#include <algorithm>
#include <array>
#include <cstring>

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

/// Blocks [first, first + count) of a region, which lie one after the other in one segment.
struct PartReader::BlockRun {
  store::SegmentFile* segment = nullptr;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint64_t begin = 0;  ///< in the file
  std::uint64_t end = 0;
};

Result<PartReader> PartReader::open(const StoreView& view, const VersionView& version,
                                    const PartView& part, const std::string& region) {
  PartReader reader;
  BELAY_ASSIGN(reader.manifest_, view.load(part, version.key));
  const Manifest& manifest = reader.manifest_;
  if (!region.empty() && find_region(manifest, region) == nullptr)
    return fail(Code::not_found, "rank {} has no region {}", part.rank, in_quotes(region));
  reader.hasher_ = fingerprint::make_hasher(manifest.hash, manifest.origin.seed);
  if (!reader.hasher_)
    return fail(Code::unsupported, "this machine cannot compute the hash {}",
                fingerprint::name_of(manifest.hash));
  const auto used = holders_of(manifest, region);
  for (std::size_t i = 0; i < manifest.segments.size(); ++i) {
    if (!used[i]) continue;
    BELAY_ASSIGN(auto segment,
                 store::SegmentFile::hold(view.tier(part.node), manifest.segments[i].id));
    reader.segments_.emplace(static_cast<std::uint8_t>(i), std::move(segment));
  }
  if (!view.still_listed(part, version.key))
    return fail(Code::not_found, "version {} was removed meanwhile", version.key.version);
  return reader;
}

/// The segment of a holder, with its index: loaded when it is first needed.
Result<store::SegmentFile*> PartReader::segment_of(std::uint8_t holder) {
  store::SegmentFile& segment = segments_.at(holder);
  if (!segment.loaded()) {
    BELAY_TRY(segment.load(manifest_.origin.store, manifest_.segments[holder].file_bytes));
    segment.sort_blocks();
  }
  return &segment;
}

Result<PartReader::BlockRun> PartReader::find_run(const RegionRecord& region, std::uint64_t first,
                                                  std::uint64_t last) {
  BlockRun run{.first = first};
  const std::uint8_t holder = manifest_.holders[region.first_block + first];
  BELAY_ASSIGN(run.segment, segment_of(holder));
  for (std::uint64_t i = first; i < last; ++i) {
    if (manifest_.holders[region.first_block + i] != holder) break;
    const Fingerprint& fingerprint = manifest_.fingerprints[region.first_block + i];
    const store::StoredBlock* block =
        run.segment->find(fingerprint, manifest_.length_of(region, i));
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

Result<void> PartReader::read(const RegionRecord& region, std::uint64_t offset,
                              std::span<std::byte> to) {
  if (to.empty()) return {};
  if (buffer_.size() == 0) {
    const std::uint64_t most = kRunBytes + kMaxBlockBytes + 2 * os::kDirectAlignment;
    BELAY_ASSIGN(buffer_, os::AlignedMemory::allocate(most));
  }
  const std::uint64_t last = (offset + to.size() - 1) / manifest_.block_bytes + 1;
  for (std::uint64_t block = offset / manifest_.block_bytes; block < last;) {
    BELAY_ASSIGN(const BlockRun run, find_run(region, block, last));
    BELAY_TRY(copy_run(region, run, offset, to));
    block += run.count;
  }
  return {};
}

}  // namespace belay::inspect
