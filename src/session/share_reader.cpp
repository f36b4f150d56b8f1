// SPDX-License-Identifier: Apache-2.0
#include "session/share_reader.hpp"

#include "base/try.hpp"
#include "format/manifest_stream.hpp"

#include <algorithm>

namespace belay::session {

Result<void> ShareReader::each_part(
    std::uint64_t begin, std::uint64_t end,
    const std::function<Result<void>(std::span<const std::byte>)>& take) {
  while (begin < end) {
    BELAY_ASSIGN(const auto part, fetch_(begin, std::min(part_bytes_, end - begin)));
    if (part.empty() || part.size() > end - begin)
      return fail(Code::corruption, "rank {} has told too little or too much of its segments",
                  rank_);
    BELAY_TRY(take(part));
    begin += part.size();
  }
  return {};
}

Result<os::PagedVector<std::byte>> ShareReader::manifest() {
  os::PagedVector<std::byte> bytes;
  bytes.reserve(head_.manifest_bytes);
  BELAY_TRY(each_part(0, head_.manifest_bytes, [&](auto part) -> Result<void> {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }));
  return bytes;
}

Result<void> ShareReader::copy_manifest(ByteSink& sink) {
  format::ManifestCheck check;
  BELAY_TRY(each_part(0, head_.manifest_bytes, [&](auto part) {
    check.take(part);
    return sink.append(part);
  }));
  return within(fmt::format("rank {}", rank_), check.finish());
}

Result<Manifest> ShareReader::manifest_head() {
  std::vector<std::byte> front;
  const auto add = [&](auto part) -> Result<void> {
    front.insert(front.end(), part.begin(), part.end());
    return {};
  };
  BELAY_TRY(each_part(
      0, std::min<std::uint64_t>(head_.manifest_bytes, format::kManifestHeaderBytes), add));
  BELAY_ASSIGN(const std::uint64_t bytes,
               format::manifest_front_bytes(front, head_.manifest_bytes));
  BELAY_TRY(each_part(front.size(), bytes, add));
  BELAY_ASSIGN(auto decoded, format::decode_manifest_head(front, head_.manifest_bytes));
  return std::move(decoded.head);
}

Result<void> ShareReader::read_blocks(std::size_t segment, std::uint64_t first, std::uint64_t count,
                                      const std::function<void(const SharedBlock&)>& take) {
  std::uint64_t left = count;
  BELAY_TRY(each_part(head_.offset_of(segment, first), head_.offset_of(segment, first + count),
                      [&](auto part) -> Result<void> {
                        decode_blocks(part, take);
                        left -= std::min(left, part.size() / SharedBlock::kBytes);
                        return {};
                      }));
  if (left > 0)
    return fail(Code::corruption, "rank {}: what it told of its segments is cut short", rank_);
  return {};
}

Result<ShareReader::Slice> ShareReader::slice(std::size_t segment, std::uint64_t first,
                                              std::uint64_t count) {
  Slice slice;
  slice.source.id = head_.segments[segment].id;
  slice.source.blocks.reserve(count);
  slice.source.needed.reserve(count);
  slice.regions.reserve(count);
  BELAY_TRY(read_blocks(segment, first, count, [&](const SharedBlock& block) {
    slice.source.blocks.push_back(block.stored);
    slice.source.needed.push_back(block.needed);
    slice.regions.push_back(block.region);
  }));
  return slice;
}

Result<aggregate::Source> ShareReader::source(std::size_t segment) {
  aggregate::Source source{head_.segments[segment].id, {}, {}};
  const std::uint64_t count = head_.segments[segment].blocks;
  source.blocks.reserve(count);
  source.needed.reserve(count);
  BELAY_TRY(read_blocks(segment, 0, count, [&](const SharedBlock& block) {
    source.blocks.push_back(block.stored);
    source.needed.push_back(block.needed);
  }));
  return source;
}

}  // namespace belay::session
