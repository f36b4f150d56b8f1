// SPDX-License-Identifier: Apache-2.0
// The nouns that every stage shares. ARCHITECTURE.md has the glossary.
#pragma once

#include "base/level.hpp"

#include <belay/stats.hpp>
#include <belay/types.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace belay {

using Rank = std::uint32_t;
inline constexpr Rank kAnyRank = ~Rank{0};  ///< of a SegmentRef; no process has it
using Run = std::uint64_t;

/// 128 bits that name a block's content. Equality of blocks is equal fingerprint and length.
struct Fingerprint {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Fingerprint&) const = default;
};
static_assert(sizeof(Fingerprint) == 16);

/// 128 random bits that name a store, made when it is created.
struct StoreId {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const StoreId&) const = default;
};

std::string to_hex(std::uint64_t low, std::uint64_t high);
inline std::string to_hex(const Fingerprint& f) { return to_hex(f.low, f.high); }
inline std::string to_hex(const StoreId& id) { return to_hex(id.low, id.high); }

/// A version as files name it. Newest = highest run, then highest number.
struct VersionKey {
  Run run = 0;
  Version version = 0;
  auto operator<=>(const VersionKey&) const = default;
};

/// The blocks that one version added for one rank.
struct SegmentId {
  VersionKey key;
  Rank rank = 0;
  auto operator<=>(const SegmentId&) const = default;
};

/// What a file of blocks is: the segment itself, a copy of it on another node, perhaps partial, or
/// a shard of the stripe that it is a member of.
enum class FileKind : std::uint8_t { segment = 0, copy = 1, shard = 2 };

/// How the blocks of an extent lie in a file. The values are part of the file format. `absent`:
/// they do not; only other copies have them. `raw`: one after the other. The others are codecs.
enum class CodecId : std::uint16_t {
  raw = 0,
  absent = 1,
  lz4 = 2,
  shuffle_lz4 = 3,
  shuffle_zstd = 4,
  delta1_zstd = 5,   ///< differences of neighbours, shuffled
  delta2_zstd = 6,   ///< differences of differences, shuffled
  lorenzo_zstd = 7,  ///< differences along all dimensions, shuffled
  zstd_long = 8,     ///< no transform, and a window as large as the extent
  delta3_zstd = 9,   ///< differences three times, shuffled
  delta1_bits = 10,  ///< differences of neighbours, by leads and bits
  delta2_bits = 11,
  delta3_bits = 12,
  lorenzo_bits = 13,
  context_bits = 14,  ///< differences of neighbours, foretold by the one before
};
inline constexpr CodecId kLastCodec = CodecId::context_bits;

/// How blocks are named. The values are part of the file format.
enum class HashKind : std::uint8_t { xxh3 = 0, md5 = 1, sha1 = 2, sha256 = 3 };

/// What every file of a store says about its origin.
struct Origin {
  StoreId store;
  std::uint64_t seed = 0;  ///< of fingerprints
  VersionKey key;
  Rank rank = 0;
  Rank ranks = 1;
  bool operator==(const Origin&) const = default;
};

/// A claim on a store: one for each opening, on every node.
struct RunRecord {
  StoreId store;
  std::uint64_t seed = 0;
  Run run = 0;
  Rank ranks = 1;
  std::string application;
  std::string host;
  std::uint64_t pid = 0;
  std::int64_t time_ns = 0;
  bool operator==(const RunRecord&) const = default;
};

/// A segment that a manifest counts on, with the size that its file must have. Of rank kAnyRank:
/// "elsewhere", blocks of version `id.key` that other ranks store; they are found by fingerprint
/// and length in any segment or copy of that version, and the sizes are 0.
struct SegmentRef {
  SegmentId id;
  std::uint64_t file_bytes = 0;
  std::uint16_t copies = 0;  ///< how many copies were made of it
  std::uint8_t nodes = 0;    ///< one less may be lost; 0: nobody has planned it
  std::uint8_t shards = 0;   ///< of each codeword of its stripe; 0: it is in none
  bool operator==(const SegmentRef&) const = default;
};

/// A region as a manifest records it; its blocks are [first_block, first_block + blocks).
struct RegionRecord {
  std::string name;
  ElementType type;
  Shape shape;
  std::uint64_t bytes = 0;
  std::uint64_t first_block = 0;
};

/// Fingerprint and holder of every block of a version: 17 bytes a block.
struct BlockTable {
  std::vector<Fingerprint> fingerprints;
  std::vector<std::uint8_t> holders;  ///< index into the manifest's holding segments
};

/// One rank's part of one version: its regions, and for each block the fingerprint and the segment
/// that holds it.
struct Manifest : BlockTable {
  Origin origin;
  VersionKey parent;  ///< {0, 0}: none
  std::string application;
  HashKind hash = HashKind::xxh3;
  std::uint32_t block_bytes = 0;
  std::int64_t time_ns = 0;
  Ledger ledger;
  Level level;          ///< what was asked for when it was taken
  bool global = false;  ///< it goes to the global tier too
  bool dump = false;    ///< taken by dump(): `keep` does not count it
  /// First those that hold blocks, of this rank or of kAnyRank; then, in any number, those of other
  /// ranks that are counted on: for blocks elsewhere, and for equal blocks that make up the copies.
  std::vector<SegmentRef> segments;
  std::vector<RegionRecord> regions;

  /// How many of the segments come first: those that holders may name.
  std::size_t holding_segments() const;
  std::uint64_t blocks_of(const RegionRecord& region) const {
    return (region.bytes + block_bytes - 1) / block_bytes;
  }
  /// Length of block `index` of a region: all are block_bytes, the last may be short.
  std::uint32_t length_of(const RegionRecord& region, std::uint64_t index) const {
    const std::uint64_t left = region.bytes - index * block_bytes;
    return left < block_bytes ? static_cast<std::uint32_t>(left) : block_bytes;
  }
};

inline constexpr std::size_t kMaxSegments = 250;  ///< that hold blocks: holders are one byte
inline constexpr std::uint32_t kMinBlockBytes = 512;
inline constexpr std::uint32_t kMaxBlockBytes = 4u << 20;
inline constexpr std::size_t kMaxNameBytes = 255;

}  // namespace belay
