// SPDX-License-Identifier: Apache-2.0
// What this rank looks after on the global tier: versions, copies of segments, and what may go.
#pragma once

#include "base/nouns.hpp"
#include "store/retention.hpp"
#include "vote/claim.hpp"
#include "vote/kept_bundles.hpp"
#include "vote/needs.hpp"
#include "vote/publish.hpp"
#include "vote/retiring.hpp"

#include <optional>
#include <string>
#include <vector>

namespace belay::vote {

/// Changed only by what all ranks have agreed on, as Holdings, which owns it. One thread.
class GlobalHoldings {
 public:
  GlobalHoldings() = default;  ///< there is no global tier
  /// `known`: versions of which a manifest is there; they exist if those of all ranks are.
  GlobalHoldings(const GlobalClaim& claim, std::vector<store::KnownVersion> known, Run run,
                 Rank rank);

  /// Is the whole version there?
  bool has(VersionKey key) const;
  /// All ranks' manifests are there.
  void drained(store::KnownVersion version);
  /// Not all are: what is there of it goes. It counts on `segments`.
  void discard(VersionKey key, std::vector<SegmentId> segments,
               const std::vector<KeptBundle>& bundles);
  void wrote(KeptBundle bundle) { bundles_.add(std::move(bundle)); }
  void does_not_exist(VersionKey key);

  /// Retires the versions that `keep` newer ones there have made superfluous.
  std::vector<VersionKey> retire_versions(const store::RetentionRule& rule);
  /// Also of retired ones that may still be seen.
  Needs needs() const;
  /// What nobody needs goes with the next take_retired(). `needs`: of all ranks. `earlier`: what
  /// earlier runs have left may go too.
  void release(const Needs& needs, const store::RetentionRule& rule, bool earlier);
  /// Give back what stays after all before taking again.
  Retired take_retired();
  void give_back(Retired left);

 private:
  void add_unread(VersionKey key);

  Rank rank_ = 0;
  std::vector<store::KnownVersion> known_;
  std::vector<SegmentId> copies_;  ///< of their own, not in bundles
  KeptBundles bundles_;
  std::vector<SegmentId> kept_manifests_;  ///< of other ranks
  std::vector<std::string> earlier_leftovers_;
  Retiring retiring_;
  Retired retired_;
};

}  // namespace belay::vote
