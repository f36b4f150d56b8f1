// SPDX-License-Identifier: Apache-2.0
// A version of a set of ranks on its way to the global tier: the blocks that the tier lacks, merged
// and encoded, and the ranks' manifests, in one file. It runs in the background, on a worker of its
// own, or inside a collective call: in the rank that aggregates the set, and in those that it asks.
#pragma once

#include <belay/result.hpp>
#include <belay/stats.hpp>

#include "aggregate/bundle_writer.hpp"
#include "aggregate/sets.hpp"
#include "base/log.hpp"
#include "base/name_match.hpp"
#include "base/nouns.hpp"
#include "codec/choice.hpp"
#include "comm/group.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "session/bundle_draft.hpp"
#include "session/drain_share.hpp"
#include "session/inquiry.hpp"
#include "session/needs_wire.hpp"
#include "session/share_reader.hpp"
#include "store/tier.hpp"
#include "vote/survey.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
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
  const NameMatch& match;  ///< of variables of different ranks
  /// Through which members of sets are asked; all ranks drain then, at the same time. nullptr: a
  /// set's files are all on its aggregator's node.
  ranks::Group* group = nullptr;
  bool keeps_step = false;  ///< with `group`: the files have a thread, so that no rank is silent
  unsigned encoders = 0;    ///< threads of their own; 0: none
  std::uint64_t memory_bytes = 0;  ///< for tables, and for extents on their way
};

/// A version that exists, as one rank's manifest has it.
struct DrainedVersion {
  Origin origin;
  HashKind hash{};
  std::uint32_t block_bytes = 0;
  std::vector<SegmentId> segments;  ///< that it counts on

  static DrainedVersion of(const Manifest& manifest);
};

/// What one rank has to do with it.
struct DrainWork {
  aggregate::RankSet set;        ///< that it aggregates; perhaps none
  std::vector<DrainTask> tasks;  ///< of the ranks whose files it reads
};

/// What became of a drain.
struct DrainReport {
  Result<void> result = {};
  /// That this rank has made, whole and durable, with the segments that have blocks in them: more
  /// than one if the tables of all members do not fit into its memory at once.
  std::vector<vote::KeptBundle> bundles = {};
  std::vector<LostFile> damaged = {};     ///< segments that could not be read
  aggregate::WrittenBundle written = {};  ///< of all bundles
  std::vector<CodecUse> codecs = {};      ///< so far, of a head, which does all drains of a rank
};

/// What a chooser has chosen so far.
std::vector<CodecUse> codec_uses(const char* tier, const codec::Chooser& chooser);

class Drain {
 public:
  Drain(DrainPlaces places, DrainedVersion version, DrainWork work);
  /// Of a version that has no files yet: `own` is what this rank brings. REQUIRES: places.group.
  Drain(DrainPlaces places, DrainedVersion version, DrainWork work, Result<OwnShare> own);

  /// The job.
  void run();
  /// Instead of run(): somebody else has done it, or it could not be submitted.
  void land(DrainReport report);
  /// Ends the job soon, in failure. Any thread.
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  /// Any thread.
  bool finished() const { return finished_.load(std::memory_order_acquire); }

  const std::atomic<bool>& cancelled() const { return cancelled_; }

  const Origin& origin() const { return version_.origin; }
  const std::vector<SegmentId>& segments() const { return version_.segments; }
  std::size_t members() const { return work_.set.members.size(); }
  const DrainReport& report() const { return report_; }  ///< REQUIRES: finished()

 private:
  Result<void> drain_node();
  Result<void> drain_across();
  /// Collective. Does `work`, and answers others until all have done theirs.
  Result<void> in_step(const std::function<Result<void>()>& work);
  Result<OwnShare> look_at_files(Rank rank);
  /// Of a rank whose files this one reads; or of another, who has told this much of it.
  ShareReader reader_of(Rank rank);
  ShareReader reader_of(Rank rank, ShareHead head);
  /// What the other members will bring.
  Result<std::vector<ShareReader>> ask_heads();
  Result<std::vector<std::byte>> ask_part(Rank rank, std::uint64_t begin, std::uint64_t most);
  Result<Letters> ask(const Letters& questions);
  std::vector<std::byte> answer(std::span<const std::byte> question);
  std::vector<std::byte> look_up(std::span<const std::byte> question);
  Result<void> read(std::span<const aggregate::Piece> pieces, std::optional<std::size_t>& damaged);
  Result<void> read_remote(Rank keeper, std::span<const aggregate::Piece> pieces,
                           std::span<const std::byte> bytes, std::optional<std::size_t>& damaged);
  /// Adds one to `group`, which is written before if its tables would not fit beside the others.
  Result<void> add_or_write(std::vector<ShareReader>& group, ShareReader share);
  /// One bundle. A rank that is too large for memory is alone.
  Result<void> write(std::vector<ShareReader>& group);
  Result<void> publish(const std::string& temporary, const std::string& name);
  void note_damaged(const SegmentId& id);

  DrainPlaces places_;
  DrainedVersion version_;
  DrainWork work_;
  std::map<Rank, Result<OwnShare>> own_;      ///< of ranks whose files this one reads
  bool brought_ = false;                      ///< there are no files to be looked at
  std::optional<Errand> errand_;              ///< under way, where this rank may have a thread
  store::PageReader reader_;                  ///< of the work
  store::PageReader answers_;                 ///< of whoever answers
  std::vector<BundleDraft::Source> sources_;  ///< of the bundle that is written
  DrainReport report_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<bool> finished_ = false;
};

}  // namespace belay::session
