// SPDX-License-Identifier: Apache-2.0
// A version on its way to the global tier: copies of the segments that it counts on, then this
// rank's manifest. It runs in the background, on a worker of its own.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "fingerprint/hasher.hpp"
#include "os/memory.hpp"
#include "session/needs_wire.hpp"
#include "store/segment_file.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belay::session {

/// A segment that this rank copies.
struct DrainTask {
  SegmentId id;
  /// Ranks that this one knows nothing of count on it: all blocks, not only those that are live in
  /// this rank's manifest.
  bool whole = false;
  catalog::Whereabouts::Place place = 0;  ///< where the segment lies
  std::string directory;                  ///< the same
  std::vector<std::string> copied;        ///< directories of the global tier that have a copy of it
};

/// What a drain works with; all of it outlives the drain.
struct DrainPlaces {
  store::Tier& nodes;   ///< where this rank's manifest and the segments are
  store::Tier& global;  ///< where copies go
  store::Tier& sight;   ///< all of the global tier can be read here
  const fingerprint::Hasher& hasher;
  Log& log;
};

class Drain {
 public:
  /// `manifest` is that of the version, which exists.
  Drain(DrainPlaces places, const Manifest& manifest, std::vector<DrainTask> tasks);

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
  /// Copies that this rank has made: whole and durable, whether or not all went well.
  const std::vector<SegmentId>& copies() const { return copies_; }
  /// Segments of this node that could not be read.
  const std::vector<LostFile>& damaged() const { return damaged_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  using Block = store::StoredBlock;

  Result<void> drain();
  Result<void> copy_segments(const Manifest& manifest);
  /// Has one of the copies that are there all that is needed?
  bool is_there(const DrainTask& task, const std::vector<Block>& needed) const;
  Result<void> copy_segment(const DrainTask& task, const std::vector<Block>& needed);
  Result<void> make_buffers(std::uint64_t segment_bytes);
  Result<void> write_copy(store::SegmentFile& segment, const std::vector<bool>& present,
                          const std::string& name);
  /// Reads and verifies blocks [first, last) of the segment, which lie one behind the other.
  Result<std::span<const std::byte>> read_run(store::SegmentFile& segment, std::size_t first,
                                              std::size_t last);
  Result<void> publish_manifest(std::span<const std::byte> bytes);

  DrainPlaces places_;
  Origin origin_;
  std::vector<SegmentId> segments_;
  std::vector<DrainTask> tasks_;
  os::AlignedMemory read_buffer_;
  os::AlignedMemory write_buffer_;
  Result<void> result_;
  std::vector<SegmentId> copies_;
  std::vector<LostFile> damaged_;
  std::uint64_t bytes_ = 0;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> finished_ = false;
};

}  // namespace belay::session
