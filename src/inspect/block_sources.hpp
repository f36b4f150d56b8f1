// SPDX-License-Identifier: Apache-2.0
// The files that may have a block: the segment that a manifest names, copies of it, or, for blocks
// elsewhere, every segment and copy of a version.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"
#include "store/segment_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace belay::inspect {

struct BlockSource {
  std::size_t node = 0;
  SegmentId id;
  FileKind kind = FileKind::segment;
};

class BlockSources {
 public:
  explicit BlockSources(const StoreView& view);

  /// Segments first, then copies, then what stripes give back of segments, be those there or not:
  /// to be opened with open_source(). Of kAnyRank: those of all ranks.
  std::vector<BlockSource> of(const SegmentId& id) const;
  /// Only files that are there.
  std::vector<BlockSource> files_of(const SegmentId& id) const;
  /// Of the segment's file; unset: it is gone. Looks once for each segment, since every rank may
  /// ask for those of every other.
  std::optional<std::uint64_t> segment_bytes(const StoreView& view, const SegmentId& id);

 private:
  std::map<SegmentId, std::vector<BlockSource>> files_;
  std::map<SegmentId, std::optional<std::uint64_t>> bytes_;
};

/// Fingerprint and length.
struct BlockName {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  bool operator==(const BlockName&) const = default;
};
struct BlockNameHash {
  std::size_t operator()(const BlockName& name) const {
    return static_cast<std::size_t>(name.fingerprint.low ^ name.length);
  }
};

/// Calls `look` for each block that the holding segment `holder` has.
void for_each_block(const Manifest& manifest, std::size_t holder,
                    const std::function<void(const RegionRecord&, const BlockName&)>& look);

/// Fingerprints of both mean the same.
bool has_same_hash(const store::SegmentFile& file, const Manifest& manifest);

/// Does the manifest count on other ranks' segments of this version?
bool has_natural_copies(const Manifest& manifest, VersionKey key);

/// How many blocks of holding segment `holder` are in no file's index. Blocks are not read.
std::uint64_t count_lacking(const StoreView& view, const BlockSources& sources,
                            const Manifest& manifest, std::size_t holder);

/// Flaws of a part whose blocks are not all there, as far as names and sizes tell; where a segment
/// is gone or has another size, as the indexes of what is left tell.
std::vector<Flaw> find_missing(const StoreView& view, BlockSources& sources, VersionKey key,
                               const PartView& part);

/// A segment whose loss may be why blocks elsewhere are lost: one to name in messages.
SegmentId suspect(const StoreView& view, BlockSources& sources, const Manifest& manifest,
                  const SegmentRef& elsewhere);

}  // namespace belay::inspect
