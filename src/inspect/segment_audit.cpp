// SPDX-License-Identifier: Apache-2.0
#include "inspect/segment_audit.hpp"

#include "base/try.hpp"
#include "fingerprint/hasher.hpp"
#include "format/wire.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <span>

namespace belay::inspect {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{8} << 20;
constexpr std::size_t kPieces = 16;  ///< of a chunk, for the threads

static_assert(kChunkBytes >= kMaxBlockBytes);

}  // namespace

/// Blocks [first, last) lie in pages [begin, end) of the file.
struct SegmentAudit::Chunk {
  std::size_t first = 0;
  std::size_t last = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  /// The next one after block `from`. REQUIRES: there is one.
  static Chunk after(const store::StoredBlocks& blocks, std::size_t from) {
    Chunk chunk{.first = from, .last = from + 1};
    chunk.begin = blocks[from].offset / os::kDirectAlignment * os::kDirectAlignment;
    const std::uint64_t most = blocks[from].offset + kChunkBytes;
    while (chunk.last < blocks.size() && blocks[chunk.last].end() <= most) ++chunk.last;
    chunk.end = format::round_up(blocks[chunk.last - 1].end(), os::kDirectAlignment);
    return chunk;
  }
};

Result<SegmentAudit> SegmentAudit::make(unsigned threads) {
  SegmentAudit audit;
  audit.parallel_ = std::make_unique<os::Parallel>(threads);
  for (int i = 0; i < 2; ++i) {
    BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(kChunkBytes + 2 * os::kDirectAlignment));
    audit.buffers_.push_back(std::move(memory));
  }
  return audit;
}

Result<std::vector<store::StoredBlock>> SegmentAudit::find_bad_blocks(store::SegmentFile& segment,
                                                                      const Advance& advance) {
  const auto hasher = fingerprint::make_hasher(segment.header().hash, segment.header().origin.seed);
  if (!hasher)
    return fail(Code::unsupported, "{}: this machine cannot compute its hash", segment.where());
  const auto& blocks = segment.blocks();
  std::vector<store::StoredBlock> bad;
  if (blocks.empty()) return bad;

  const auto start = [&](const Chunk& chunk, os::AlignedMemory& buffer) {
    const auto to = buffer.bytes().first(chunk.end - chunk.begin);
    return std::async([&segment, chunk, to] { return segment.file().read(chunk.begin, to); });
  };
  std::vector<char> is_bad;
  std::size_t turn = 0;
  Chunk chunk = Chunk::after(blocks, 0);
  auto reading = start(chunk, buffers_[turn]);
  for (;;) {
    const Result<std::size_t> got = reading.get();
    const Chunk here = chunk;
    if (!got) return Unexpected(got.error());
    const auto bytes = std::as_const(buffers_[turn]).bytes().first(*got);
    const bool last = here.last == blocks.size();
    if (!last) {
      chunk = Chunk::after(blocks, here.last);
      turn = 1 - turn;
      reading = start(chunk, buffers_[turn]);
    }
    const std::size_t count = here.last - here.first;
    const std::size_t pieces = std::min(count, kPieces);
    is_bad.assign(count, 0);
    parallel_->run(pieces, [&](std::size_t piece) {
      for (std::size_t i = count * piece / pieces; i < count * (piece + 1) / pieces; ++i) {
        const store::StoredBlock& block = blocks[here.first + i];
        const std::uint64_t at = block.offset - here.begin;
        is_bad[i] = at + block.length > bytes.size() ||
                    hasher->hash(bytes.subspan(at, block.length)) != block.fingerprint;
      }
    });
    for (std::size_t i = 0; i < count; ++i)
      if (is_bad[i]) bad.push_back(blocks[here.first + i]);
    advance(here.end - here.begin);
    if (last) return bad;
  }
}

}  // namespace belay::inspect
