// SPDX-License-Identifier: Apache-2.0
// What this rank holds: versions, segments, and what may go.
#pragma once

#include <belay/stats.hpp>

#include "base/nouns.hpp"
#include "store/retention.hpp"
#include "vote/claim.hpp"
#include "vote/publish.hpp"
#include "vote/recovery.hpp"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace belay::vote {

VersionInfo info_of(const Manifest& manifest);

/// Changed only by what all ranks have agreed on, so that all come to the same versions. One
/// thread.
class Holdings {
 public:
  Holdings(const Claim& claim, std::uint64_t keep, Rank rank);

  /// A number that was never used: not by this store on any node, not by this session.
  Version take_number() { return next_number_++; }
  Version next_number() const { return next_number_; }
  void reuse_number(Version number) { next_number_ = number; }  ///< only as a planted mistake

  /// All ranks have voted.
  void exists(const Manifest& manifest, VersionInfo info);
  /// Not all have, or it could not be read at restore.
  void does_not_exist(VersionKey key);
  /// The files of a version that failed may go at once.
  void discard(VersionKey key);
  /// All ranks have read this version back; versions of earlier runs count from now on.
  void restored(const Manifest& manifest);

  /// Newest first: every version that is worth a try.
  std::vector<VersionKey> candidates() const;
  std::optional<VersionKey> newest() const;
  /// See Session::latest().
  std::optional<Version> latest() const;
  std::vector<VersionInfo> versions() const;

  /// What may go now that the newest version exists. Forgets it; give back what stays after all.
  /// `base`, the version that the next one builds on, stays: it may be an old one that was
  /// restored.
  Retired take_retired(VersionKey base);
  void give_back(const Retired& left);
  /// Must the mark be left that a version has existed? The same on all ranks.
  bool must_settle() const { return !settled_ && newest().has_value(); }
  void settled() { settled_ = true; }

 private:
  store::KnownVersion* find(VersionKey key);
  void retire_earlier_leftovers();

  Rank rank_;
  bool leads_node_;
  store::RetentionRule rule_;
  Version next_number_ = 1;
  std::vector<store::KnownVersion> known_;  ///< newest first
  std::map<VersionKey, VersionInfo> infos_;
  std::vector<SegmentId> segments_here_;
  std::optional<Version> trace_;  ///< what latest() says while no version can be read
  bool settled_ = false;
  bool made_version_ = false;  ///< this run has made one that exists
  std::vector<std::string> earlier_leftovers_;
  Retired retired_;
};

}  // namespace belay::vote
