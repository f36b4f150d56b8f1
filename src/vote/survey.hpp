// SPDX-License-Identifier: Apache-2.0
// What a rank finds in its node's directory when it opens a store. A survey changes nothing.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "store/tier.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::vote {

/// Whose store this is, as its files say.
struct Identity {
  StoreId store;
  std::uint64_t seed = 0;
  Rank ranks = 1;
  std::string application;
  bool operator==(const Identity&) const = default;
};

struct SurveyedManifest {
  VersionKey key;
  VersionKey parent;
  bool readable = false;  ///< whole, ours, and every segment that it counts on has its size
};

/// The part that all ranks must know to agree.
struct Survey {
  std::vector<Identity> identities;  ///< distinct; more than one is a mixture
  Run highest_run = 0;               ///< of any name
  Run highest_record = 0;            ///< of a run record; every opening leaves one on every node
  VersionKey highest_number = {};    ///< of any name: the highest number, and the run that took it
  bool settled = false;              ///< a version is known to have existed
  Run closed_run = 0;                ///< the last run that ended with close(), nothing in doubt
  bool unreadable = false;           ///< files are there, but none says whose
  std::vector<SurveyedManifest> manifests;  ///< of this rank, newest first
};

/// A survey with what only this rank needs of it.
struct OwnSurvey {
  Survey survey;
  std::vector<Manifest> readable;         ///< without their block arrays
  std::vector<std::string> temporaries;   ///< of this rank
  std::vector<SegmentId> segments;        ///< of this rank, as names say
  std::vector<Run> run_records;           ///< names in this tier
  std::vector<std::string> closed_marks;  ///< names in this tier
};

Result<OwnSurvey> survey(store::Tier& tier, Rank rank, Log& log);

/// Reads, decodes and checks a manifest: it must be the one that its name says, of this store.
/// `store` unset: of any store.
Result<Manifest> load_manifest(store::Tier& tier, VersionKey key, Rank rank,
                               const std::optional<StoreId>& store);
/// Every segment that the manifest counts on is there with its size.
Result<void> check_segments(store::Tier& tier, const Manifest& manifest);

std::vector<std::byte> encode_survey(const Survey& survey);
Survey decode_survey(std::span<const std::byte> bytes);

}  // namespace belay::vote
