// SPDX-License-Identifier: Apache-2.0
#include "inspect/block_search.hpp"

#include "base/try.hpp"
#include "inspect/source_files.hpp"

#include <algorithm>
#include <unordered_set>

namespace belay::inspect {
namespace {

// Files of a version have common blocks in the same order, so that the next one wanted is mostly
// in the buffer already.
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

bool same(const BlockSource& a, const std::optional<BlockSource>& b) {
  return b && a.node == b->node && a.id == b->id && a.kind == b->kind;
}

}  // namespace

Result<BlockSearch> BlockSearch::open(const StoreView& view, const BlockSources& sources,
                                      const SegmentOutline& outline,
                                      const std::optional<BlockSource>& last) {
  BlockSearch search;
  const format::SegmentHeader& header = outline.header;
  search.hasher_ = fingerprint::make_hasher(header.hash, header.origin.seed);
  if (!search.hasher_) return fail(Code::unsupported, "this machine cannot compute its hash");
  std::unordered_set<BlockName, BlockNameHash> wanted;
  for (std::size_t i = 0; i < outline.entries.size(); ++i)
    if (outline.present[i])
      wanted.insert({outline.entries[i].fingerprint, outline.entries[i].length});
  const SegmentId id{header.origin.key, header.origin.rank};
  auto files = sources.of({id.key, kAnyRank});
  const auto order = [&](const BlockSource& source) {
    return same(source, last) ? 2 : source.id == id ? 0 : 1;
  };
  std::stable_sort(files.begin(), files.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  for (const BlockSource& source : files) {
    // Other segments are asked for natural blocks, which no stripe has.
    if (source.kind == FileKind::shard && source.id != id) continue;
    auto file = open_source(view, source, header.origin.store, {});
    if (!file || file->header().hash != header.hash ||
        file->header().origin.seed != header.origin.seed)
      continue;
    // One file for each rank of a large job would be too many to hold.
    const auto& blocks = file->blocks();
    if (std::none_of(blocks.begin(), blocks.end(), [&](const store::StoredBlock& block) {
          return wanted.contains({block.fingerprint, block.length});
        }))
      continue;
    file->sort_blocks();
    search.sources_.push_back({*std::move(file), same(source, last)});
  }
  return search;
}

std::span<const std::byte> BlockSearch::read_from(Source& source, const store::StoredBlock& block) {
  const bool there = block.offset >= source.begin && block.end() <= source.begin + source.bytes;
  if (!there) {
    const std::size_t most = std::max<std::size_t>(kBufferBytes, source.file.header().block_bytes) +
                             2 * os::kDirectAlignment;
    if (source.buffer.size() == 0) {
      auto memory = os::AlignedMemory::allocate(most / os::kDirectAlignment * os::kDirectAlignment);
      if (!memory) return {};
      source.buffer = *std::move(memory);
    }
    source.begin = block.offset / os::kDirectAlignment * os::kDirectAlignment;
    const auto got = source.file.file().read(source.begin, source.buffer.bytes());
    source.bytes = got ? *got : 0;
    if (block.end() > source.begin + source.bytes) return {};
  }
  return std::as_const(source.buffer).bytes().subspan(block.offset - source.begin, block.length);
}

Result<std::span<const std::byte>> BlockSearch::read(const BlockName& name) {
  for (Source& source : sources_) {
    const store::StoredBlock* block = source.file.find(name.fingerprint, name.length);
    if (block == nullptr) continue;
    const auto bytes = read_from(source, *block);
    if (bytes.empty() || hasher_->hash(bytes) != name.fingerprint) continue;
    needed_last_ = needed_last_ || source.last;
    return bytes;
  }
  return fail(Code::not_found, "no file has the block {} undamaged", to_hex(name.fingerprint));
}

}  // namespace belay::inspect
