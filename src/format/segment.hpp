// SPDX-License-Identifier: Apache-2.0
// The bytes of segments: header, packed blocks, index, footer. docs/format.md is the authority.
//
//   [header 128][blocks, packed][index: extents, entries][zeros][footer 64]   size % 4096 == 0
#pragma once

#include <belay/result.hpp>

#include "base/bytes.hpp"
#include "base/nouns.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace belay::format {

inline constexpr std::uint32_t kFileAlignment = 4096;
inline constexpr std::size_t kSegmentHeaderBytes = 128;
inline constexpr std::size_t kSegmentFooterBytes = 64;
/// Raw bytes of an extent that has a codec: what reading a part of it may take of memory.
inline constexpr std::uint64_t kMaxEncodedExtentBytes = std::uint64_t{64} << 20;

struct SegmentHeader {
  Origin origin;
  HashKind hash = HashKind::xxh3;
  std::uint32_t block_bytes = 0;
  bool partial = false;  ///< extents are absent: only a copy may be so, and it is of format 2
  bool encoded = false;  ///< extents may have codecs: format 3, and never partial
  std::uint64_t rider_bytes = 0;  ///< between header and payload; only a bundle has them
  bool operator==(const SegmentHeader&) const = default;
};

/// A run of blocks encoded together; its blocks are entries [first_entry, first_entry + entries).
struct Extent {
  std::uint64_t offset = 0;         ///< in the file; absent: the end of the extent before
  std::uint64_t encoded_bytes = 0;  ///< absent: 0
  std::uint64_t raw_bytes = 0;      ///< the sum of its blocks' lengths
  std::uint64_t first_entry = 0;
  std::uint32_t entries = 0;
  CodecId codec = CodecId::raw;
  bool operator==(const Extent&) const = default;
};

struct IndexEntry {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  bool operator==(const IndexEntry&) const = default;
};

struct SegmentFooter {
  std::uint64_t index_offset = 0;
  std::uint64_t extents = 0;
  std::uint64_t entries = 0;
  std::uint64_t index_checksum = 0;
  std::uint64_t header_checksum = 0;  ///< of the header that this footer belongs to
  bool partial = false;
  bool encoded = false;
  bool operator==(const SegmentFooter&) const = default;
};

struct SegmentIndex {
  std::vector<Extent> extents;
  std::vector<IndexEntry> entries;
};

/// The size of a segment with so many bytes of encoded blocks.
std::uint64_t segment_file_bytes(std::uint64_t payload_bytes, std::uint64_t extents,
                                 std::uint64_t entries);

std::array<std::byte, kSegmentHeaderBytes> encode_segment_header(const SegmentHeader& header);
Result<SegmentHeader> decode_segment_header(std::span<const std::byte> bytes);

/// Appends index, padding and footer to a sink whose offset() is the file's. `next` is called
/// `entries` times for the entries in order, so that the caller need not hold them. What a reader
/// would refuse is `invalid_argument`; the file is then worthless.
Result<void> encode_segment_end(ByteSink& sink, const SegmentHeader& header,
                                std::span<const Extent> extents, std::uint64_t entries,
                                const std::function<IndexEntry()>& next);

/// `bytes` are the last kSegmentFooterBytes of a file of `file_bytes`.
Result<SegmentFooter> decode_segment_footer(std::span<const std::byte> bytes,
                                            std::uint64_t file_bytes);
/// `bytes` are the file's from footer.index_offset up to the footer. Extents are in bounds of the
/// payload, in order, disjoint, and add up with their entries; those of a partial segment are raw
/// and absent by turns. What their codecs have made is looked at by nobody here. A footer of
/// another header's file is corruption.
Result<SegmentIndex> decode_segment_index(std::span<const std::byte> bytes,
                                          const SegmentFooter& footer, const SegmentHeader& header);
/// The same in two steps, for who need not hold the entries: first the extents, which verifies the
/// bytes; then `take` gets the entries in order. After an error what it got is worthless.
Result<std::vector<Extent>> decode_segment_extents(std::span<const std::byte> bytes,
                                                   const SegmentFooter& footer,
                                                   const SegmentHeader& header);
Result<void> decode_segment_entries(std::span<const std::byte> bytes, const SegmentFooter& footer,
                                    const SegmentHeader& header, std::span<const Extent> extents,
                                    const std::function<void(const IndexEntry&)>& take);

}  // namespace belay::format
