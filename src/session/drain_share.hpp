// SPDX-License-Identifier: Apache-2.0
// What one rank brings to its set's bundle: its manifest, and the segments that it looks after.
// Their tables may be larger than memory, so they are told in parts, from the files themselves.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "session/flight.hpp"
#include "session/needs_wire.hpp"
#include "store/pages.hpp"
#include "store/segment_table.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::session {

/// A segment that a rank looks after.
struct DrainTask {
  SegmentId id;
  Rank keeper = 0;  ///< the rank that does
  /// Ranks that its own rank knows nothing of count on it: all blocks, not only those that are live
  /// in that rank's manifest.
  bool whole = false;
  catalog::Whereabouts::Place place = 0;  ///< where the segment lies
  std::string directory;                  ///< the same
  std::vector<std::string> copied;        ///< directories of the global tier that have blocks of it
};

/// A segment with blocks that the tier lacks.
struct SharedSegment {
  SegmentId id;
  catalog::Whereabouts::Place place = 0;
  std::uint32_t block_bytes = 0;
  std::uint64_t blocks = 0;  ///< all that it has
};

/// What a share is, in a few words.
struct ShareHead {
  std::uint64_t manifest_bytes = 0;
  std::vector<SharedSegment> segments;  ///< by rising id

  std::uint64_t blocks() const;
  /// What it takes of memory while its bundle is planned.
  std::uint64_t planning_bytes() const;
  /// Where blocks of a segment begin among its parts: first comes the manifest, then they do.
  std::uint64_t offset_of(std::size_t segment, std::uint64_t block) const;

  std::vector<std::byte> encode() const;
  static Result<ShareHead> decode(std::span<const std::byte> bytes);
};

/// A block as parts tell of it.
struct SharedBlock {
  store::StoredBlock stored;
  bool needed = false;       ///< by the bundle
  std::uint32_t region = 0;  ///< of the manifest, if that is known

  static constexpr std::uint64_t kBytes = 33;  ///< in a part
};
/// `bytes` are whole blocks of a part.
void decode_blocks(std::span<const std::byte> bytes,
                   const std::function<void(const SharedBlock&)>& take);

/// From which block on they are of which region.
struct RegionRun {
  std::uint64_t first = 0;
  std::uint32_t region = 0;
};

/// As the rank itself sees it, or one that reads the files of the same node. Takes a bit for each
/// block, and little else. One thread at a time.
class OwnShare {
 public:
  /// What a segment is told from. The functions may be called again and again.
  struct Segment {
    SharedSegment head;
    std::vector<bool> needed;     ///< by block
    std::vector<RegionRun> runs;  ///< by rising block
    /// Its blocks [first, first + count), in order.
    std::function<Result<void>(std::uint64_t first, std::uint64_t count, store::PageReader& reader,
                               const store::SegmentTable::Take&)>
        tell;
    /// Bytes of blocks, as these say where they are.
    std::function<Result<void>(std::uint64_t begin, std::span<std::byte> into,
                               store::PageReader& reader)>
        read;
  };
  /// Bytes of the manifest.
  using ReadManifest = std::function<Result<void>(std::uint64_t begin, std::span<std::byte> into,
                                                  store::PageReader& reader)>;

  /// `segments` by rising id.
  OwnShare(std::uint64_t manifest_bytes, ReadManifest manifest, std::vector<Segment> segments);

  const ShareHead& head() const { return head_; }
  /// About `most` bytes of its parts, from `begin` on: some of the manifest, or whole blocks.
  Result<std::vector<std::byte>> part(std::uint64_t begin, std::uint64_t most,
                                      store::PageReader& reader);
  /// Of which part() could not tell, the last time that it failed.
  const std::optional<SegmentId>& failed() const { return failed_; }
  /// Bytes of a segment, as its blocks say where they are.
  Result<void> read(const SegmentId& id, std::uint64_t begin, std::span<std::byte> into,
                    store::PageReader& reader);

 private:
  static Result<void> add_blocks(Segment& segment, std::uint64_t first, std::uint64_t count,
                                 store::PageReader& reader, std::vector<std::byte>& part);

  ShareHead head_;
  ReadManifest manifest_;
  std::vector<Segment> segments_;
  std::optional<SegmentId> failed_;
};

/// Where a rank's files are, and what is on the global tier.
struct DrainSources {
  store::Tier& nodes;  ///< where manifests and segments are
  store::Tier& sight;  ///< all of the global tier can be read here
  Log& log;
  std::uint64_t memory_bytes = 0;  ///< to find out what is needed
};
/// `origin` is that of the manifest. `tasks` of other keepers are left out. Segments that cannot be
/// read are added to `damaged`.
Result<OwnShare> open_share(const DrainSources& from, const Origin& origin,
                            const std::vector<DrainTask>& tasks, std::vector<LostFile>& damaged);

/// The share of a version without files: `blocks`, in their order, are those of its segment.
/// `manifest` and what they point to must outlive it, unchanged.
Result<OwnShare> hold_share(const Manifest& manifest, std::vector<UnsafeBlock> blocks);

}  // namespace belay::session
