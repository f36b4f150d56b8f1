// SPDX-License-Identifier: Apache-2.0
// A version of a set of ranks on its way to the global tier: the blocks that the tier lacks, merged
// and encoded, and the ranks' manifests, in one file. It runs in the background of the rank that
// aggregates the set, on a worker of its own.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_plan.hpp"
#include "aggregate/bundle_writer.hpp"
#include "aggregate/sets.hpp"
#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "codec/choice.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "session/needs_wire.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belay::session {

/// A segment that a member of the set looks after.
struct DrainTask {
  SegmentId id;
  /// Ranks that its own rank knows nothing of count on it: all blocks, not only those that are live
  /// in that rank's manifest.
  bool whole = false;
  catalog::Whereabouts::Place place = 0;  ///< where the segment lies
  std::string directory;                  ///< the same
  std::vector<std::string> copied;        ///< directories of the global tier that have blocks of it
};

/// What one rank drains: a set's segments, or nothing.
struct DrainShare {
  aggregate::RankSet set;
  std::vector<DrainTask> tasks;
};

/// What a drain works with; all of it outlives the drain.
struct DrainPlaces {
  store::Tier& nodes;   ///< where manifests and segments are
  store::Tier& global;  ///< where the bundle goes
  store::Tier& sight;   ///< all of the global tier can be read here
  const fingerprint::Hasher& hasher;
  codec::Chooser& chooser;
  os::Clock& clock;
  Log& log;
  unsigned encoders = 0;           ///< threads of their own; 0: none
  std::uint64_t memory_bytes = 0;  ///< for extents on their way
};

class Drain {
 public:
  /// `manifest` is this rank's of the version, which exists. `set`: the ranks that this one drains,
  /// perhaps none; `tasks`: their segments, by rising id.
  Drain(DrainPlaces places, const Manifest& manifest, aggregate::RankSet set,
        std::vector<DrainTask> tasks);

  /// The job.
  void run();
  /// Instead of run(), where it could not be submitted.
  void abandon(const Error& error);
  /// Ends the job soon, in failure. Any thread.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  /// Any thread.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  const Origin& origin() const { return origin_; }
  const std::vector<SegmentId>& segments() const { return segments_; }

  // REQUIRES: finished().
  const Result<void>& result() const { return result_; }
  /// The bundle that this rank has made, whole and durable.
  const std::optional<SegmentId>& bundle() const { return bundle_; }
  /// Segments that have blocks in it.
  const std::vector<SegmentId>& bundled() const { return bundled_; }
  /// Segments of this node that could not be read.
  const std::vector<LostFile>& damaged() const { return damaged_; }
  const aggregate::WrittenBundle& written() const { return written_; }

 private:
  Result<void> drain();
  Result<Manifest> read_manifest(Rank rank);
  Result<void> find_sources();
  /// Unset: the tier has all that is needed of it.
  Result<std::optional<aggregate::Source>> source_of(const DrainTask& task);
  /// Of blocks that are needed, those that the tier has are not any more.
  void leave_out_copied(const DrainTask& task, aggregate::Source& source) const;
  Result<void> write();
  Result<void> publish(const std::string& temporary, const std::string& name);

  DrainPlaces places_;
  Origin origin_;
  HashKind hash_;
  std::uint32_t block_bytes_;
  std::vector<SegmentId> segments_;
  aggregate::RankSet set_;
  std::vector<DrainTask> tasks_;
  std::vector<aggregate::MemberManifest> carried_;
  std::vector<Manifest> manifests_;
  std::vector<aggregate::Source> sources_;
  Result<void> result_;
  std::optional<SegmentId> bundle_;
  std::vector<SegmentId> bundled_;
  std::vector<LostFile> damaged_;
  aggregate::WrittenBundle written_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> finished_ = false;
};

}  // namespace belay::session
