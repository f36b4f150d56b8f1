// SPDX-License-Identifier: Apache-2.0
// What one rank brings to its set's bundle: its manifest, and the segments that it looks after.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_plan.hpp"
#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "format/manifest.hpp"
#include "os/paged_vector.hpp"
#include "session/needs_wire.hpp"
#include "store/pages.hpp"
#include "store/segment_file.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
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

/// Where a rank's files are, and what is on the global tier.
struct DrainSources {
  store::Tier& nodes;  ///< where manifests and segments are
  store::Tier& sight;  ///< all of the global tier can be read here
  Log& log;
};

/// As aggregators see it.
struct DrainShare {
  os::PagedVector<std::byte> manifest_bytes;
  std::vector<aggregate::Source> sources;                   ///< with blocks that the tier lacks
  std::map<SegmentId, catalog::Whereabouts::Place> places;  ///< of these

  /// What it takes of memory while its bundle is planned.
  std::uint64_t planning_bytes() const;

  /// What it has, in a few words; and about `most` bytes of it, from `begin` on.
  std::vector<std::byte> encode_head() const;
  std::vector<std::byte> encode_part(std::uint64_t begin, std::uint64_t most) const;
  std::uint64_t parts_bytes() const;  ///< of all parts
};

/// A share that comes from another rank, part by part.
class ComingShare {
 public:
  static Result<ComingShare> decode_head(std::span<const std::byte> head);

  std::uint64_t planning_bytes() const;  ///< of the whole
  bool complete() const { return taken_ == bytes_; }
  std::uint64_t taken() const { return taken_; }  ///< where the next part begins
  Result<void> take(std::span<const std::byte> part);
  /// REQUIRES: complete().
  DrainShare release() { return std::move(share_); }

 private:
  std::uint64_t manifest_bytes_ = 0;
  std::vector<std::uint64_t> blocks_;  ///< by source
  std::uint64_t bytes_ = 0;            ///< of all parts
  std::uint64_t taken_ = 0;
  std::size_t source_ = 0;  ///< whose blocks come now
  DrainShare share_;
};

/// As the rank itself sees it, or one that reads the files of the same node.
class OwnShare {
 public:
  /// `origin` is that of the manifest. `tasks` of other keepers are left out. Segments that cannot
  /// be read are added to `damaged`.
  static Result<OwnShare> open(const DrainSources& from, const Origin& origin,
                               const std::vector<DrainTask>& tasks, std::vector<LostFile>& damaged);
  /// The same of a version without files: all of `blocks`, which must outlive this, in their order,
  /// are those of its segment.
  static Result<OwnShare> of_memory(const Manifest& manifest,
                                    std::span<const std::span<const std::byte>> blocks,
                                    std::span<const Fingerprint> fingerprints);

  const DrainShare& share() const { return share_; }
  /// To be asked once: its tables are large.
  DrainShare take_share() { return std::exchange(share_, {}); }
  /// Bytes of a segment, as its source says where they are.
  Result<void> read(const SegmentId& id, std::uint64_t begin, std::span<std::byte> into,
                    store::PageReader& reader);

 private:
  Result<void> open_segment(const DrainSources& from, const format::ManifestView& manifest,
                            const DrainTask& task, std::vector<LostFile>& damaged);

  Result<void> copy_held(std::uint64_t begin, std::span<std::byte> into) const;

  DrainShare share_;
  std::map<SegmentId, store::SegmentFile> files_;
  /// Of a version without files: by where they would begin in one.
  os::PagedVector<std::pair<std::uint64_t, std::span<const std::byte>>> held_;
};

}  // namespace belay::session
