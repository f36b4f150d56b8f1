// SPDX-License-Identifier: Apache-2.0
// The rider of a bundle: what it says, between its header and its extents, about the ranks whose
// blocks it has. docs/format.md is the authority.
//
//   [tables: segments, manifests][blocks of the segments][zeros][manifests, byte for byte]
#pragma once

#include <belay/result.hpp>

#include "base/bytes.hpp"
#include "base/nouns.hpp"
#include "format/checksum.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace belay::format {

/// A segment of which blocks are in a bundle.
struct BundledSegment {
  SegmentId id;
  std::uint32_t block_bytes = 0;
  std::uint64_t blocks = 0;  ///< that the segment has, in the bundle or not
  bool operator==(const BundledSegment&) const = default;
};

/// A manifest in a bundle.
struct CarriedManifest {
  Rank rank = 0;
  std::uint64_t bytes = 0;
  bool operator==(const CarriedManifest&) const = default;
};

/// A block of a segment in a bundle.
struct BundledBlock {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  std::uint32_t entry = 0;  ///< in the bundle's index, or kNotInBundle
  bool operator==(const BundledBlock&) const = default;
};
inline constexpr std::uint32_t kNotInBundle = ~std::uint32_t{0};

struct Rider {
  std::vector<BundledSegment> segments;    ///< by rising id
  std::vector<CarriedManifest> manifests;  ///< of the bundle's version, by rising rank

  /// The place of a segment, or of a rank's manifest; unset: it is not there.
  std::optional<std::size_t> find(const SegmentId& segment) const;
  std::optional<std::size_t> find_manifest(Rank rank) const;

  std::uint64_t table_bytes() const;
  /// From the file's first byte: where the blocks of a segment are, and how many bytes.
  std::uint64_t blocks_offset(std::size_t segment) const;
  static std::uint64_t blocks_bytes(std::uint64_t blocks);
  std::uint64_t manifest_offset(std::size_t manifest) const;
  /// Of all of the rider, manifests included: what the header says.
  std::uint64_t bytes() const;
  bool operator==(const Rider&) const = default;
};

/// The front of a rider, which says how long its tables are.
inline constexpr std::size_t kRiderFrontBytes = 32;

std::vector<std::byte> encode_rider_tables(const Rider& rider);
/// `front` are the rider's first kRiderFrontBytes, of `rider_bytes` in all.
Result<std::uint64_t> decode_rider_front(std::span<const std::byte> front,
                                         std::uint64_t rider_bytes);
/// `tables` are as many bytes as the front says, itself included.
Result<Rider> decode_rider_tables(std::span<const std::byte> tables, std::uint64_t rider_bytes,
                                  Rank ranks);

/// Of one segment, with a checksum at the end. `next` is called `blocks` times, in order, so that
/// the caller need not hold them.
Result<void> encode_bundled_blocks(ByteSink& sink, std::uint64_t blocks,
                                   const std::function<BundledBlock()>& next);
/// What comes out of that, in pieces: whole blocks, any number at a time, in order.
class BundledBlocksCheck {
 public:
  /// `entries` are those of the bundle's index.
  BundledBlocksCheck(const BundledSegment& segment, std::uint64_t entries)
      : block_bytes_(segment.block_bytes), entries_(entries) {}
  Result<void> take(std::span<const std::byte> bytes,
                    const std::function<void(const BundledBlock&)>& take_block);
  /// All came, and these are the last bytes. What was taken may be believed only then.
  Result<void> finish(std::span<const std::byte> checksum);

 private:
  const std::uint32_t block_bytes_;
  const std::uint64_t entries_;
  Checksum64 checksum_;
};
inline constexpr std::size_t kBundledBlockBytes = 24;
/// The same at once.
Result<std::vector<BundledBlock>> decode_bundled_blocks(std::span<const std::byte> bytes,
                                                        const BundledSegment& segment,
                                                        std::uint64_t entries);

}  // namespace belay::format
