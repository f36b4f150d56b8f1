// SPDX-License-Identifier: Apache-2.0
// What a rank finds in its node's directory when it opens a store. A survey changes nothing.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "base/stripe.hpp"
#include "catalog/whereabouts.hpp"
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
  Rank rank = 0;
  VersionKey parent;
  bool readable = false;  ///< whole, ours, and every segment that it counts on was found somewhere
  std::uint32_t place = 0;  ///< in Survey::places
  Level level = {};         ///< as the manifest says, if it could be read
  bool dump = false;
};

/// What a node's directory holds of segments, as far as one rank looked.
struct PlaceSurvey {
  std::string directory;
  std::vector<catalog::HeldFile> files;
  bool global = false;  ///< it is of the global tier
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
  bool bundles = false;              ///< there are any, but for those of the global tier
  std::vector<SurveyedManifest> manifests;  ///< that this rank found, of any rank
  std::vector<PlaceSurvey> places;
  std::vector<Stripe> stripes;  ///< of the shards that were found; distinct
};

/// A bundle that this rank looks after.
struct KeptBundle {
  SegmentId id;                     ///< as its name says: version, and number of its set
  std::vector<SegmentId> segments;  ///< that have blocks in it
  bool readable = true;             ///< false: nobody knows which these are
};

/// A survey with what only this rank needs of it.
struct OwnSurvey {
  Survey survey;
  /// As survey.manifests, without their block arrays; unset: could not be read.
  std::vector<std::optional<Manifest>> found;
  std::vector<Manifest> readable;         ///< of this rank, without their block arrays
  std::vector<std::string> temporaries;   ///< of this rank, or looked after
  std::vector<SegmentId> segments;        ///< of this rank, or looked after where it writes
  std::vector<SegmentId> kept_copies;     ///< likewise, in any place
  std::vector<SegmentId> kept_shards;     ///< looked after
  std::vector<SegmentId> kept_manifests;  ///< of other ranks, looked after
  std::vector<KeptBundle> kept_bundles;   ///< looked after
  std::vector<Run> run_records;           ///< names in the first place
  std::vector<std::string> closed_marks;  ///< names in the first place
};

/// A directory that a rank looks into. Its ranks share the work: each looks after the files of some
/// ranks, whoever these are, and of its own rank everywhere.
struct SurveyedPlace {
  store::Tier* tier = nullptr;
  std::string directory;
  Rank share = 0;
  Rank sharers = 0;  ///< 0: only files of its own rank

  bool looks_after(Rank rank) const { return sharers != 0 && rank % sharers == share; }
};

Result<OwnSurvey> survey(std::span<const SurveyedPlace> places, Rank rank, Log& log);
/// What was found on the global tier becomes part of what was found on the node. What is to be done
/// with it there stays in `global`.
void add_global_survey(OwnSurvey& own, OwnSurvey& global);
/// Decides which manifests are readable, once it is known who holds what.
void judge_manifests(OwnSurvey& own, const catalog::Whereabouts& whereabouts, Rank rank, Log& log);

/// Reads, decodes and checks a manifest: it must be the one that its name says, of this store.
/// `store` unset: of any store. If it is in several places of the tier, the first that is whole.
Result<Manifest> load_manifest(store::Tier& tier, VersionKey key, Rank rank,
                               const std::optional<StoreId>& store);
/// Every segment that the manifest counts on is in this tier with its size.
Result<void> check_segments(store::Tier& tier, const Manifest& manifest);

std::vector<std::byte> encode_survey(const Survey& survey);
Survey decode_survey(std::span<const std::byte> bytes);

}  // namespace belay::vote
