// SPDX-License-Identifier: Apache-2.0
// A version in flight: the half that runs in the background. Staged buffers are verified and
// written, the segment is finished, and the vote is cast.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "capture/staging.hpp"
#include "dedup/local_dedup.hpp"
#include "session/equipment.hpp"
#include "session/kept_copies.hpp"
#include "session/kept_shards.hpp"
#include "session/segment_encoding.hpp"
#include "session/version_plan.hpp"
#include "store/file_writer.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

namespace belay::session {

/// A block that must be stored by somebody.
struct UnsafeBlock {
  fingerprint::Block bytes;
  std::uint64_t block = 0;   ///< in the new manifest
  std::uint32_t region = 0;  ///< in the new manifest
};

/// How a version came out that another process has made durable.
struct Outcome {
  bool voted = false;
  std::optional<Error> error;  ///< why not
  // If it was voted for:
  Manifest manifest;
  std::vector<Share> shares;
  std::vector<std::vector<Rank>> keepers;
  vote::Kept kept;
  std::uint64_t sent_bytes = 0;
  std::uint64_t kept_bytes = 0;
};

/// Jobs of one flight run one after the other on the worker. Capture owns `manifest` and `written`
/// until finish() is submitted; from then on they belong to the worker, and to the session again
/// once it is finished.
class Flight {
 public:
  Flight(Equipment& equipment, Manifest manifest, std::uint64_t start_ns);

  std::shared_ptr<Manifest> manifest;
  std::vector<bool> written;  ///< which blocks are in this version's segment, in its order
  std::vector<bool> natural;  ///< which of these come last; empty: none
  // By rank, if ranks plan versions together: what each stores, and who keeps its manifest.
  std::vector<Share> shares;
  std::vector<std::vector<Rank>> keepers;
  std::uint64_t sent_bytes = 0;  ///< to other ranks
  std::uint64_t kept_bytes = 0;  ///< of others' blocks, and of parity, in files here

  /// Segments are written with codecs. To be called before anything is staged.
  void encode();
  bool encodes() const { return encoding_ != nullptr; }

  /// Lends the index of the older version, whose memory takes that of this one once it has voted.
  /// To be called before finish() is submitted.
  void reuse(dedup::LocalDedup index) { index_ = std::move(index); }
  /// Reserves room for the segment's header at the front of its first buffer.
  void start_segment(capture::StagingBuffer& buffer);

  /// Buffers with blocks that stay until the flight has ended.
  void hold(std::vector<capture::StagingBuffer*> buffers) { held_ = std::move(buffers); }
  const std::vector<capture::StagingBuffer*>& held() const { return held_; }
  /// No version follows here that would want an index of this one.
  void leave_out_index() { wants_index_ = false; }

  /// What this rank will keep for others. To be called before any of it arrives.
  void expect_copies(std::unique_ptr<KeptCopies> copies) { kept_ = std::move(copies); }

  /// Shards that this rank will keep. To be called before any of their pieces is written.
  void expect_shards(std::unique_ptr<KeptShards> shards) { shards_ = std::move(shards); }

  // Jobs.
  /// Writes pieces of shards; `done` is set when their memory is free.
  void keep(const std::vector<KeptShards::Piece>& pieces, std::atomic<bool>& done);
  /// Writes copies that have arrived; `done` is set when their memory is free.
  void keep(const std::vector<KeptCopies::Arrival>& arrivals, std::atomic<bool>& done);
  /// Verifies and writes whole pages of the buffer, then gives it back.
  void write(capture::StagingBuffer* buffer);
  /// Verifies and writes all blocks of the segment from where they are held, through `scratch`,
  /// which is then what finish() takes. Large pieces are not copied.
  void write_held(const std::vector<UnsafeBlock>& blocks, capture::StagingBuffer& scratch);
  /// Writes the last buffer (nullptr: none), the index, and the manifest. Then this rank has voted.
  void finish(capture::StagingBuffer* last);
  /// Are blocks that must stay what they were when they were captured?
  Result<void> check_held(std::span<const UnsafeBlock> blocks);
  /// Blocks and manifest are in a bundle, if `outcome` says so; `bundles` are what this rank has
  /// written, or may have, with the bytes that they took.
  void land_in_bundles(const Result<void>& outcome, std::vector<vote::KeptBundle> bundles,
                       std::uint64_t file_bytes);
  /// Another process has done all of it.
  void land(Outcome outcome);
  /// This version will not be voted for: `error` says why.
  void abandon(Error error);

  /// True as soon as it is known that this rank will not vote. Any thread.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// True when the last job has ended. Any thread.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  // REQUIRES: finished().
  bool voted() const { return voted_; }
  const std::optional<Error>& error() const { return error_; }
  Outcome outcome() const;
  std::uint64_t start_ns() const { return start_ns_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t durable_ns() const { return durable_ns_; }
  /// What versions() will say of it.
  VersionInfo& info() { return info_; }
  /// An index of this version's blocks, for the next one, if there is one.
  dedup::LocalDedup& index() { return index_; }
  bool indexed() const { return indexed_; }
  std::vector<std::uint64_t> live_bytes() const;
  /// See KeptCopies.
  Result<void> name_kept_manifests() { return kept_ ? kept_->name_manifests() : Result<void>{}; }
  vote::Kept kept() const;

 private:
  SegmentId segment_id() const;
  Result<void> verify(const capture::StagingBuffer& buffer);
  Result<void> verify(std::span<const UnsafeBlock> blocks);
  Result<void> create_segment();
  Result<void> append_held(std::span<const UnsafeBlock> blocks);
  /// Says which region it was that changed; only finish() may read the manifest's regions.
  void name_changed_region();
  Result<void> write_pages(capture::StagingBuffer& buffer, std::size_t bytes);
  /// Verifies, encodes and writes all blocks of the buffer.
  Result<void> write_encoded(const capture::StagingBuffer& buffer);
  Result<void> write_last(capture::StagingBuffer& last);
  format::SegmentHeader header() const;
  std::vector<format::Extent> extents(std::uint64_t entries) const;
  /// Writes the last buffer, index and footer.
  Result<void> write_segment_end(capture::StagingBuffer& last);
  Result<void> vote(capture::StagingBuffer* last);
  Result<void> publish_with_own_scratch();
  Result<void> publish_manifest(capture::StagingBuffer& scratch, store::FileWriter* segment);
  Result<void> clear_away();
  void end();
  Result<void> index_blocks();

  Equipment& equipment_;
  std::uint64_t start_ns_;
  std::optional<store::FileWriter> segment_;
  std::unique_ptr<SegmentEncoding> encoding_;
  std::unique_ptr<KeptCopies> kept_;
  std::unique_ptr<KeptShards> shards_;
  std::vector<SegmentId> landed_shards_;  ///< that another process has written
  std::vector<vote::KeptBundle> bundles_;
  std::vector<capture::StagingBuffer*> held_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> finished_ = false;
  std::optional<Error> error_;
  std::optional<std::uint32_t> changed_region_;
  bool visible_ = false;  ///< others may see the manifest, even if the vote failed
  bool voted_ = false;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t durable_ns_ = 0;
  VersionInfo info_;
  dedup::LocalDedup index_;
  bool indexed_ = false;
  bool wants_index_ = true;
};

}  // namespace belay::session
