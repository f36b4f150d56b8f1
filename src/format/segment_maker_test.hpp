// SPDX-License-Identifier: Apache-2.0
// For tests: segments, and copies that have only some of the blocks.
#pragma once

#include "format/segment.hpp"
#include "format/vector_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace belay::format {

struct MadeBlock {
  Fingerprint fingerprint;
  std::vector<std::byte> content;
  bool present = true;

  std::uint32_t length() const { return static_cast<std::uint32_t>(content.size()); }
};

/// Raw and absent by turns, as many as it takes.
inline std::vector<Extent> extents_of(const std::vector<MadeBlock>& blocks) {
  std::vector<Extent> extents;
  std::uint64_t end = kSegmentHeaderBytes;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const CodecId codec = blocks[i].present ? CodecId::raw : CodecId::absent;
    if (extents.empty() || extents.back().codec != codec)
      extents.push_back({.offset = end, .first_entry = i, .codec = codec});
    Extent& extent = extents.back();
    ++extent.entries;
    extent.raw_bytes += blocks[i].length();
    if (!blocks[i].present) continue;
    extent.encoded_bytes += blocks[i].length();
    end += blocks[i].length();
  }
  return extents;
}

/// The file; partial if a block is not present. What encode_segment_end() refuses is its error.
inline Result<std::vector<std::byte>> make_segment(SegmentHeader header,
                                                   const std::vector<MadeBlock>& blocks,
                                                   const std::vector<Extent>& extents) {
  header.partial = false;
  for (const MadeBlock& block : blocks) header.partial = header.partial || !block.present;
  VectorSink sink(encode_segment_header(header));
  for (const MadeBlock& block : blocks)
    if (auto done = block.present ? sink.append(block.content) : Result<void>(); !done)
      return Unexpected(done.error());
  std::size_t next = 0;
  auto ended = encode_segment_end(sink, header, extents, blocks.size(), [&] {
    const MadeBlock& block = blocks[next++];
    return IndexEntry{block.fingerprint, block.length()};
  });
  if (!ended) return Unexpected(ended.error());
  return std::move(sink.bytes());
}

inline std::vector<std::byte> make_segment(const SegmentHeader& header,
                                           const std::vector<MadeBlock>& blocks) {
  return make_segment(header, blocks, extents_of(blocks)).value();
}

}  // namespace belay::format
