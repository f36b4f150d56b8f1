// SPDX-License-Identifier: Apache-2.0
// A version of a set of ranks on its way to the global tier: the blocks that the tier lacks, merged
// and encoded, and the ranks' manifests, in one file. It runs in the background, on a worker of its
// own: in the rank that aggregates the set, and in those that it asks.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_writer.hpp"
#include "aggregate/sets.hpp"
#include "base/log.hpp"
#include "base/nouns.hpp"
#include "codec/choice.hpp"
#include "comm/group.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "session/drain_share.hpp"
#include "session/inquiry.hpp"
#include "session/needs_wire.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace belay::session {

/// What a drain works with; all of it outlives the drain.
struct DrainPlaces {
  store::Tier& nodes;   ///< where manifests and segments are
  store::Tier& global;  ///< where the bundle goes
  store::Tier& sight;   ///< all of the global tier can be read here
  const fingerprint::Hasher& hasher;
  codec::Chooser& chooser;
  os::Clock& clock;
  Log& log;
  /// Through which members of sets are asked; all ranks drain then, at the same time. nullptr: a
  /// set's files are all on its aggregator's node.
  ranks::Group* group = nullptr;
  unsigned encoders = 0;           ///< threads of their own; 0: none
  std::uint64_t memory_bytes = 0;  ///< for extents on their way
};

/// What one rank has to do with it.
struct DrainWork {
  aggregate::RankSet set;        ///< that it aggregates; perhaps none
  std::vector<DrainTask> tasks;  ///< of the ranks whose files it reads
};

class Drain {
 public:
  /// `manifest` is this rank's of the version, which exists.
  Drain(DrainPlaces places, const Manifest& manifest, DrainWork work);

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
  /// Segments that could not be read.
  const std::vector<LostFile>& damaged() const { return damaged_; }
  const aggregate::WrittenBundle& written() const { return written_; }

 private:
  Result<void> drain_node();
  Result<void> drain_across();
  Result<OwnShare> open_share(Rank rank);
  /// Asks the members for what they bring.
  Result<std::vector<DrainShare>> gather_shares();
  Result<Letters> ask(const Letters& questions);
  std::vector<std::byte> answer(std::span<const std::byte> question);
  Result<void> read(std::span<const aggregate::Piece> pieces, std::optional<std::size_t>& damaged);
  Result<void> read_remote(Rank keeper, std::span<const aggregate::Piece> pieces,
                           std::span<const std::byte> bytes, std::optional<std::size_t>& damaged);
  Result<void> write(std::vector<DrainShare> shares);
  Result<void> publish(const std::string& temporary, const std::string& name);
  void note_damaged(const SegmentId& id);

  DrainPlaces places_;
  Origin origin_;
  HashKind hash_;
  std::uint32_t block_bytes_;
  std::vector<SegmentId> segments_;
  DrainWork work_;
  std::map<Rank, Result<OwnShare>> own_;  ///< of ranks whose files this one reads
  std::optional<Errand> errand_;          ///< where this rank may have threads
  std::vector<aggregate::Source> sources_;
  std::map<SegmentId, catalog::Whereabouts::Place> source_places_;
  Result<void> result_;
  std::optional<SegmentId> bundle_;
  std::vector<SegmentId> bundled_;
  std::vector<LostFile> damaged_;
  aggregate::WrittenBundle written_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> finished_ = false;
};

}  // namespace belay::session
