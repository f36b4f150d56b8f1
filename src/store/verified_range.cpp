// SPDX-License-Identifier: Apache-2.0
#include "store/verified_range.hpp"

#include "base/try.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>

namespace belay::store {
namespace {

/// The part of `into`, which begins at `offset`, that lies in [begin, end).
std::span<std::byte> overlap(std::span<std::byte> into, std::uint64_t offset, std::uint64_t begin,
                             std::uint64_t end) {
  const std::uint64_t first = std::max(offset, begin);
  const std::uint64_t last = std::min(offset + into.size(), end);
  return first >= last ? std::span<std::byte>{} : into.subspan(first - offset, last - first);
}

/// What is not payload. Header, index and footer were verified when the file was opened.
Result<void> read_around(SegmentFile& segment, std::uint64_t offset, std::span<std::byte> into) {
  const auto& blocks = segment.blocks();
  const std::uint64_t payload_end =
      blocks.empty() ? format::kSegmentHeaderBytes : blocks.back().end();
  const auto copy_part = [&](std::uint64_t begin, std::uint64_t end, bool zeros) -> Result<void> {
    const auto part = overlap(into, offset, begin, end);
    if (part.empty()) return {};
    const std::uint64_t at = offset + static_cast<std::uint64_t>(part.data() - into.data());
    BELAY_ASSIGN(const auto pages, read_pages(segment.file(), at, at + part.size()));
    std::memcpy(part.data(), pages.bytes().data(), part.size());
    if (zeros &&
        std::any_of(part.begin(), part.end(), [](std::byte b) { return b != std::byte{}; }))
      return fail(Code::corruption, "{}: bytes between blocks and index are not zero",
                  segment.where());
    return {};
  };
  BELAY_TRY(copy_part(0, format::kSegmentHeaderBytes, false));
  BELAY_TRY(copy_part(payload_end, segment.index_offset(), true));
  return copy_part(segment.index_offset(), segment.file_bytes(), false);
}

Result<void> read_verified(SegmentFile& segment, const NameBlock& name, std::uint64_t offset,
                           std::span<std::byte> into) {
  if (into.empty()) return {};
  if (segment.encoded())
    return fail(Code::corruption, "{}: is encoded, as no member of a stripe is", segment.where());
  if (offset > segment.file_bytes() || into.size() > segment.file_bytes() - offset)
    return fail(Code::corruption, "{}: ends before byte {}", segment.where(), offset + into.size());
  BELAY_TRY(read_around(segment, offset, into));
  const auto& blocks = segment.blocks();
  auto block =
      std::lower_bound(blocks.begin(), blocks.end(), offset,
                       [](const StoredBlock& b, std::uint64_t at) { return b.end() <= at; });
  for (; block != blocks.end() && block->offset < offset + into.size(); ++block) {
    BELAY_ASSIGN(const auto pages, read_pages(segment.file(), block->offset, block->end()));
    if (name(pages.bytes()) != block->fingerprint)
      return fail(Code::corruption, "{}: the block at byte {} is damaged", segment.where(),
                  block->offset);
    const auto part = overlap(into, offset, block->offset, block->end());
    const std::uint64_t at = offset + static_cast<std::uint64_t>(part.data() - into.data());
    std::memcpy(part.data(), pages.bytes().data() + (at - block->offset), part.size());
  }
  return {};
}

}  // namespace

Result<void> read_member(SegmentFile& segment, const StripeMember& member, const NameBlock& name,
                         std::uint64_t offset, std::span<std::byte> into) {
  const auto before = overlap(into, offset, 0, member.gap_begin);
  BELAY_TRY(read_verified(segment, name, offset, before));
  const auto behind = into.subspan(before.size());
  if (behind.empty()) return {};
  return read_verified(segment, name, offset + before.size() + member.gap_bytes, behind);
}

}  // namespace belay::store
