// SPDX-License-Identifier: Apache-2.0
// What this rank holds: versions, segments, and what may go.
#pragma once

#include <belay/stats.hpp>

#include "base/nouns.hpp"
#include "store/retention.hpp"
#include "vote/claim.hpp"
#include "vote/global_holdings.hpp"
#include "vote/kept_bundles.hpp"
#include "vote/needs.hpp"
#include "vote/publish.hpp"
#include "vote/recovery.hpp"
#include "vote/retiring.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::vote {

VersionInfo info_of(const Manifest& manifest);

/// What a rank keeps for others of one version, or for them and itself.
struct Kept {
  std::vector<SegmentId> copies;
  std::vector<SegmentId> manifests;
  std::vector<SegmentId> shards;  ///< as shard_id() names them
  std::vector<KeptBundle> bundles = {};
};

/// Changed only by what all ranks have agreed on, so that all come to the same versions. One
/// thread.
class Holdings {
 public:
  /// `strongest`: see RetentionRule.
  Holdings(const Claim& claim, std::uint64_t keep, Rank rank,
           std::uint32_t strongest = ~std::uint32_t{0});

  /// A number that was never used: not by this store on any node, not by this session.
  Version take_number() { return next_number_++; }
  Version next_number() const { return next_number_; }
  void reuse_number(Version number) { next_number_ = number; }  ///< only as a planted mistake

  /// All ranks have voted.
  void exists(const Manifest& manifest, VersionInfo info, Kept kept = {});
  /// Not all have, or it could not be read at restore.
  void does_not_exist(VersionKey key);
  /// The files of a version that failed may go at once. It counts on `segments`; unset: nobody
  /// knows.
  void discard(VersionKey key, const Kept& kept = {},
               std::optional<std::vector<SegmentId>> segments = {});
  /// All ranks have read this version back; versions of earlier runs count from now on.
  void restored(const Manifest& manifest);

  /// Newest first: every version that is worth a try. Neither these nor newest() are dumps.
  std::vector<VersionKey> candidates() const;
  std::optional<VersionKey> newest() const;
  std::optional<VersionKey> find_dump(Version version) const;
  /// See Session::latest().
  std::optional<Version> latest() const;
  std::vector<VersionInfo> versions() const;

  /// Retires the versions that `keep` newer ones have made superfluous on nodes. `base`, the
  /// version that the next one builds on, stays: it may be an old one that was restored; and so
  /// does `pinned`, which is on its way to the global tier.
  std::vector<VersionKey> retire_versions(VersionKey base, VersionKey pinned = {});
  /// What the versions that are left count on, for this rank; and retired ones that may still be
  /// seen, if these are hidden first.
  Needs needs() const;
  /// From now on blocks go only after all ranks have hidden the manifests that count on them.
  void hide_first() { hides_first_ = true; }
  /// Where the tier of versions has them.
  const std::vector<KeptBundle>& bundles() const { return bundles_.all(); }
  bool made_version() const { return made_version_; }
  /// Could this go, if nobody needed it? The same on all ranks.
  bool may_go(const SegmentId& id) const {
    return made_version_ && (rule_.earlier_runs_count || id.key.run == rule_.run);
  }
  /// What nobody needs any more goes with the next take_retired(). `needs`: of all ranks, if these
  /// decide together.
  void release(const Needs& needs);
  /// What may go: of retired versions the manifests, and what was released. Forgets it; give back
  /// what stays after all.
  Retired take_retired();
  void give_back(Retired left);

  // The global tier, where versions and copies have a life of their own.
  /// All ranks have drained this version, and it counts on these segments.
  void drained(VersionKey key, const std::vector<SegmentId>& segments);
  /// `bundles`: what this rank has written of it.
  void not_drained(VersionKey key, const std::vector<SegmentId>& segments,
                   const std::vector<KeptBundle>& bundles) {
    global_.discard(key, segments, bundles);
  }
  void wrote_global(KeptBundle bundle) { global_.wrote(std::move(bundle)); }
  std::vector<VersionKey> retire_global();
  Needs global_needs() const { return global_.needs(); }
  void release_global(const Needs& needs) { global_.release(needs, rule_, !earlier_runs_matter()); }
  Retired take_global_retired() { return global_.take_retired(); }
  void give_back_global(const Retired& left) { global_.give_back(left); }

  /// Must the mark be left that a version has existed? The same on all ranks.
  bool must_settle() const { return !settled_ && newest().has_value(); }
  void settled() { settled_ = true; }

 private:
  store::KnownVersion* find(VersionKey key);
  void forget(VersionKey key);
  /// Versions of earlier runs are there, and do not count yet.
  bool earlier_runs_matter() const;
  void retire_earlier_leftovers();

  Rank rank_;
  bool leads_node_;
  store::RetentionRule rule_;
  Version next_number_ = 1;
  std::vector<store::KnownVersion> known_;  ///< newest first
  std::map<VersionKey, VersionInfo> infos_;
  std::vector<SegmentId> segments_here_;
  Kept kept_;  ///< but for bundles
  KeptBundles bundles_;
  GlobalHoldings global_;
  std::optional<Version> trace_;  ///< what latest() says while no version can be read
  bool settled_ = false;
  bool made_version_ = false;  ///< this run has made one that exists
  std::vector<std::string> earlier_leftovers_;
  bool hides_first_ = false;
  Retiring retiring_;  ///< if so
  Retired retired_;
};

}  // namespace belay::vote
