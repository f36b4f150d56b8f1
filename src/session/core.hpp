// SPDX-License-Identifier: Apache-2.0
// A session: the pipeline assembled. Session in <belay/belay.hpp> is its public face.
#pragma once

#include <belay/belay.hpp>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "capture/dirty_sets.hpp"
#include "capture/regions.hpp"
#include "capture/staging.hpp"
#include "catalog/catalog.hpp"
#include "comm/group.hpp"
#include "dedup/local_dedup.hpp"
#include "dedup/node_layout.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "os/parallel.hpp"
#include "session/bundling.hpp"
#include "session/copy_exchange.hpp"
#include "session/drain.hpp"
#include "session/equipment.hpp"
#include "session/flight.hpp"
#include "session/head_line.hpp"
#include "session/needs_wire.hpp"
#include "session/place_sets.hpp"
#include "session/restorer.hpp"
#include "session/schedule.hpp"
#include "session/version_capture.hpp"
#include "session/voyage.hpp"
#include "session/worker.hpp"
#include "vote/claim.hpp"
#include "vote/holdings.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::detail {

/// Unless an option says otherwise: memory for capture, and for a drain.
inline constexpr std::uint64_t kLeastStagingBytes = std::uint64_t{64} << 20;

/// Everything that open() has prepared.
struct CoreParts {
  Settings settings;
  std::unique_ptr<Log> log;
  os::Clock* clock = nullptr;
  std::unique_ptr<ranks::Group> group;
  std::unique_ptr<ranks::Group> voyages;    ///< for the worker; null: it must not communicate
  std::unique_ptr<ranks::Group> drains;     ///< for the drain worker; null: it must not communicate
  bool sets_over_nodes = false;             ///< those that share a file of the global tier
  std::unique_ptr<session::HeadLine> head;  ///< of this rank, if it has one
  std::unique_ptr<session::DrainLine> drain_line;  ///< the same, with a global tier
  vote::Claim claim;
  std::vector<dedup::Node> nodes;  ///< by rank; empty unless ranks plan versions together
  bool bundles = false;  ///< versions are written as bundles at once: there are no nodes' files
  std::unique_ptr<fingerprint::Hasher> hasher;
  std::unique_ptr<codec::Chooser> chooser;         ///< of codecs for segments; null: they are raw
  std::unique_ptr<codec::Chooser> global_chooser;  ///< with a global tier
  std::unique_ptr<os::Parallel> parallel;
  unsigned read_threads = 1;
  unsigned encode_threads = 0;               ///< of a drain; 0: it has none of its own
  std::optional<std::uint64_t> drain_bytes;  ///< memory of a drain; unset: as much as staging has
  bool drain_threads = false;  ///< a drain may have a thread that keeps step with other ranks
  std::unique_ptr<session::Worker> worker;
  std::unique_ptr<session::Worker> drain_worker;  ///< with a global tier
  std::unique_ptr<capture::Tracker> tracker;
};

/// Members are those of Session, whose comments are the contract.
class SessionCore {
 public:
  explicit SessionCore(CoreParts parts);
  ~SessionCore();

  Result<void> protect(std::string_view name, std::unique_ptr<RegionAccess> access);
  Result<void> unprotect(std::string_view name);
  std::optional<Version> latest() const { return holdings_.latest(); }
  std::vector<VersionInfo> versions() const;
  Stats stats() const;
  Result<Version> restore(const RestoreOptions& options);
  bool due();
  Result<Version> checkpoint();
  Result<void> begin();
  Result<void> add(std::string_view name);
  Result<Version> commit();
  Result<Version> wait();
  Result<void> close();
  using Buffers = std::span<const std::span<const std::byte>>;
  Result<Version> dump(Buffers buffers, int copies);
  Result<void> load(Version version, std::span<const std::span<std::byte>> buffers);

  ranks::Group& group() { return *parts_.group; }

  /// Passes a result on to the caller; a failure is kept for wait() or close() as well.
  template <class T>
  Result<T> remembered(Result<T> result) {
    if (!result && !unreported_) unreported_ = result.error();
    return result;
  }

 private:
  /// Collective calls, so that ranks notice when they make different ones.
  enum class Call : std::uint64_t {
    due = 1,
    checkpoint,
    begin,
    commit,
    wait,
    restore,
    dump,
    load,
    close
  };

  /// After a change there: one hides manifests, the next removes what they counted on.
  static constexpr unsigned kGlobalRounds = 2;

  /// Removal of retired files, by the worker.
  struct Housekeeping {
    std::atomic<bool> done = false;
    vote::Retired left;  ///< what could not be removed; when done
  };

  // core_settle.cpp: what ranks agree on between versions.
  /// The fate of the version in flight is agreed on. False: a rank is still writing it, and
  /// `late = skip` says not to wait.
  /// `asked`: the version to restore, which must be the same on all ranks.
  Result<bool> settle(Call call, Version asked = 0);
  /// What one rank brings to a collective call, and all ranks learn: the lowest of each.
  struct Meeting {
    Version asked = 0;  ///< must be the same on all
    bool idle = true;
    bool agrees = true;
    bool holds = false;   ///< there is memory for what must go in the background
    bool drained = true;  ///< no version is on its way to the global tier
  };
  Result<Meeting> meet(Call call, Meeting mine);
  static Result<void> check_same_call(std::span<const std::uint64_t> lowest, Call mine);
  /// Another rank has closed the session while this one called something else.
  void end_with_others();
  void note_lost_peer();
  /// Collective. `ends`: nobody minds to wait.
  Result<void> decide_flight(bool exists, bool ends);
  void adopt_flight();
  /// `named` is an error if all have voted, but not all copies of manifests have their names.
  Result<void> drop_flight(const Result<void>& named);
  void reload_catalog();
  Result<void> settle_store();
  /// Collective if ranks keep files for each other: what nobody needs any more is removed in the
  /// background.
  Result<void> keep_house();
  Result<void> keep_house_again();
  /// A rank may hide manifests that count on files which another one removes: all have hidden
  /// theirs before. On nodes it is enough that whoever removes has hidden its own, and space is
  /// dear. The same on all ranks.
  bool hides_first() const {
    const bool shares = together() || parts_.claim.shares_files;
    return parts_.claim.has_bundles || (settings_.diskless() && shares);
  }
  void retire_versions();
  /// A round in which goes what nobody needs; null: one is under way.
  std::shared_ptr<Housekeeping> begin_housekeeping(const vote::Needs& needs);
  /// Manifests that were retired go with it.
  void submit_housekeeping(std::shared_ptr<Housekeeping> round);
  void finish_housekeeping();
  void mark_closed();

  // core.cpp: capture.
  Result<void> check_usable(bool capturing) const;
  Result<void> start_version(std::uint64_t entry_ns);
  Result<void> prepare_version(VersionKey key, std::uint64_t entry_ns);
  Level level_of(Version version) const;
  Result<session::SegmentDoubts> doubt_segments(const Level& level);
  bool is_here(const SegmentRef& segment);
  Result<Version> capture_and_seal(std::uint64_t entry_ns);
  /// By the version under way. REQUIRES: there is one.
  bool is_captured(const capture::Regions::Region* region) const;
  Result<void> capture_region(const std::string& name, capture::Regions::Region& region);
  Result<void> capture_rest();
  Result<Version> seal_version(std::uint64_t entry_ns);
  /// The version was captured, and is durable when the worker is done with it.
  Version note_captured(std::uint64_t sealed_ns);
  Error give_up_version(const Error& error, std::uint64_t entry_ns);
  void close_ledger(Ledger& ledger, std::uint64_t entry_ns) const;
  void add_last_to_total();

  // core_copies.cpp: versions that ranks plan together.
  bool together() const { return !parts_.nodes.empty(); }
  std::uint32_t copies_of(const Level& level) const;
  /// Collective. What the versions of all ranks count on; and what has vanished is known to all.
  Result<vote::Needs> exchange_needs();
  std::vector<session::LostFile> look_for_lost_files();
  /// Collective. Files that were found to be damaged are as good as lost, for all ranks.
  Result<void> tell_damaged(const std::vector<session::LostFile>& damaged);
  /// Segments that this rank has, but could not read these blocks of.
  std::vector<session::LostFile> damaged_here(const std::vector<session::LostBlock>& blocks) const;
  /// Collective. `captured` is this rank's success, `holds` says that it has memory for unsafe
  /// blocks. All succeed, or all fail; true: all have the memory.
  Result<bool> agree_captured(const Result<void>& captured, bool holds = false);
  /// Collective. All that follows capture: ranks decide who stores what and keeps copies of it, and
  /// exchange these, in the background if they can.
  Result<Version> share_and_seal(const Result<void>& captured, std::uint64_t entry_ns);
  Result<void> share_here(std::uint64_t entry_ns);
  Result<Version> share_in_background(std::uint64_t entry_ns);
  /// Without files on nodes, and without memory to hold unsafe blocks: inside checkpoint().
  Result<Version> bundle_here(std::uint64_t entry_ns);
  std::function<void()> bundling_job(session::Cargo cargo);
  /// The manifest is the worker's from here on.
  session::Cargo take_cargo_and_close(std::uint64_t entry_ns);
  std::shared_ptr<session::Voyage> make_voyage(session::Cargo cargo);
  /// The rest of the version, by a head or a voyage.
  Result<std::function<void()>> background_job(session::Cargo cargo);
  Result<std::vector<std::byte>> order_for_head(session::Cargo cargo);
  /// Collective. The version in flight exists: copies of its manifests get their names before
  /// anybody is told.
  Result<void> name_kept_manifests();
  /// The version in flight exists: its files are where the plan says.
  void note_whereabouts();
  void note_stripes();
  /// Which places may be lost at once at a level.
  Result<session::PlaceSets> sets_at(const Level& level);
  void note_bundles();
  /// Bundles that this rank looks after and that are gone.
  std::vector<session::LostFile> look_for_lost_bundles();
  /// Blocks of a segment of the last version would not survive what this level must.
  bool is_unsafe(const SegmentRef& segment, const session::PlaceSets& sets) const;

  // core_dump.cpp: versions that stand alone.
  Result<void> take_dump(Buffers buffers, VersionKey key, const Level& level,
                         std::uint64_t entry_ns);
  Result<void> capture_dump(Buffers buffers, VersionKey key, const Level& level,
                            catalog::Catalog& nothing, dedup::LocalDedup& own,
                            std::uint64_t entry_ns);
  /// Collective. Waits until this rank has voted or failed, as `taken` says, and learns whether
  /// all have.
  Result<Version> finish_dump(VersionKey key, std::uint64_t asked, const Result<void>& taken);

  // core_drain.cpp: the global tier.
  /// Collective. The last existing version goes there too, in the background if it may. If the one
  /// before is still on its way, it is waited for, unless `may_skip`.
  Result<void> start_drain(bool may_skip);
  /// Sets reach over nodes, and only the thread of the collective calls may communicate.
  bool drains_in_call() const { return parts_.sets_over_nodes && !parts_.drains; }
  session::DrainPlaces drain_places();
  /// By the drains' worker; inline sessions return when it is done on all ranks.
  Result<void> submit_drain(std::function<void()> job);
  /// Collective.
  Result<void> drain_in_call();
  /// Collective. Waits until `done` holds on all ranks, which work on the drains' worker.
  Result<void> await_drain_workers(const std::function<bool()>& done);
  /// Which ranks share files on the global tier. The same on all ranks.
  std::vector<aggregate::RankSet> rank_sets() const;
  std::uint64_t drain_bytes() const {
    return parts_.drain_bytes.value_or(settings_.staging_bytes.value_or(staging_.limit_bytes()));
  }
  /// Collective. Which segments this rank copies.
  Result<session::DrainWork> share_drain(const Manifest& manifest);
  /// For a head.
  std::vector<std::byte> order_drain(const session::DrainedVersion& version,
                                     const session::DrainWork& work);
  void learn_bandwidth(const aggregate::WrittenBundle& written);
  /// Collective. Waits for the drain under way, if there is one.
  Result<void> end_drain();
  /// Collective. REQUIRES: the drain has finished on all ranks.
  Result<void> finish_drain();
  /// No rank will ask what became of the drain.
  void cancel_drain();
  void report_drain_failure(Version version, const Error& error);
  /// Collective. What no version on the global tier needs any more is removed there.
  Result<void> keep_global_house();
  void retire_global();
  void submit_global_housekeeping(std::shared_ptr<Housekeeping> round);
  void finish_global_housekeeping();

  // core_restore.cpp: the way back.
  /// Does this rank's step of the attempt go well on all ranks? If not, `reason` says why.
  Result<bool> all_succeed(const Result<void>& mine, std::optional<Error>& reason);
  /// Collective. False: this version cannot be restored, the next older one may. An error ends the
  /// restore on all ranks.
  Result<bool> try_version(VersionKey key, const RestoreOptions& options,
                           std::optional<Error>& reason);
  Result<Manifest> load(VersionKey key);
  Result<Manifest> within_identity(Result<Manifest> manifest) const;
  /// Collective. Blocks that are not on this node come from others.
  Result<void> fill(const Manifest& manifest, const std::vector<session::RegionMatch>& matches);
  using GlobalRead = Result<std::vector<session::LostFile>>;
  /// Collective. Blocks that are on the global tier; an error means that a peer is lost. `read`
  /// says how it went here: which files were found damaged.
  Result<void> read_global(session::Equipment& equipment, os::Parallel& readers,
                           const Manifest& manifest, std::vector<session::LostBlock>& left,
                           GlobalRead& read);
  void adopt_restored(Manifest manifest);
  /// Collective. If something was lost, a version of the restored state puts it back.
  Result<void> heal(const RestoreOptions& options);

  CoreParts parts_;
  const Settings& settings_;
  Log& log_;
  os::Clock& clock_;
  const Rank rank_;

  capture::Regions regions_;
  capture::DirtySets dirty_sets_;
  capture::Staging staging_;
  session::Equipment equipment_;
  session::Schedule schedule_;
  catalog::Catalog catalog_;
  dedup::LocalDedup dedup_;
  bool index_is_current_ = false;  ///< dedup_ indexes the catalog's manifest
  vote::Holdings holdings_;

  std::optional<Level> healing_;             ///< the next version has this level at least
  std::optional<dedup::NodeLayout> layout_;  ///< for the level of the version under way
  session::ExchangeWindows windows_;
  std::optional<Error> spoiled_;  ///< why the version begun cannot be committed
  std::optional<Error> lost_;     ///< a peer is; nobody can be asked any more

  std::shared_ptr<session::Flight> flight_;
  bool missed_ = false;  ///< a version was begun by all, but this rank had no memory for a flight
  std::optional<session::VersionCapture> capture_;
  std::shared_ptr<Housekeeping> housekeeping_;  ///< the round under way
  std::vector<CodecUse> head_codecs_;           ///< what a head has used for the global tier
  std::shared_ptr<session::Drain> drain_;       ///< on all ranks, or on none
  std::shared_ptr<Housekeeping> global_housekeeping_;
  /// So often something may go from the global tier; the same on all ranks.
  unsigned global_rounds_ = kGlobalRounds;
  std::uint64_t settle_ns_ = 0;    ///< of the version under way
  std::uint64_t blocking_ns_ = 0;  ///< of the version under way, over all calls that made it

  Stats stats_;
  std::optional<Error> unreported_;
  bool closed_ = false;
};

}  // namespace belay::detail
