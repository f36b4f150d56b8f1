// SPDX-License-Identifier: Apache-2.0
// Taking a store: node directories, locks, whose it is, and a run of its own.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "comm/group.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "store/tier.hpp"
#include "vote/fetch.hpp"
#include "vote/survey.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::vote {

struct ClaimRequest {
  std::string store;
  std::string node;  ///< failure domain of this rank
  std::string application;
  std::string host;
  std::uint64_t pid = 0;
  /// How long to wait for locks that others hold. Ranks without a lock to take wait meanwhile, so
  /// it must be less than the group's deadline.
  std::uint64_t patience_ns = 10'000'000'000;
  std::string global = {};                 ///< directory of the global tier; empty: there is none
  bool sees_all = false;                   ///< `store` is of the kind that each rank can read whole
  std::optional<std::uint64_t> seed = {};  ///< of fingerprints, if the store is new; unset: random
};

/// Everything outside that a claim needs.
struct Surroundings {
  ranks::Group& group;
  os::Files& files;
  os::Clock& clock;
  os::Random& random;
  Log& log;
};

/// The global tier, which belongs to the store: a directory for each node, as on nodes.
struct GlobalClaim {
  /// This node's directory there, and under it those that no rank of this job claims.
  std::unique_ptr<store::Tier> tier;
  bool leads_node = false;
  std::vector<std::string> directories;  ///< by rank: where it writes
  OwnSurvey own;                         ///< what this rank looks after there
};

/// A store that is this session's until the claim is destroyed.
struct Claim {
  Identity identity;
  Run run = 0;
  RunRecord record;  ///< as written to every node
  bool leads_node = false;
  Rank ranks_on_node = 1;
  /// This node's directory, and under it those that no rank of this job claims: a program that
  /// comes back under another host name finds its versions there.
  std::unique_ptr<store::Tier> tier;
  std::optional<GlobalClaim> global;
  /// Only to read: the tier, then all of the global tier, which the former may be a part of.
  std::unique_ptr<store::Tier> sight;
  std::vector<std::unique_ptr<os::Lock>> locks;
  OwnSurvey own;
  std::vector<Survey> surveys;           ///< of all ranks
  std::vector<std::string> nodes;        ///< by rank: its failure domain
  std::vector<std::string> directories;  ///< by rank: where it writes
  catalog::Whereabouts whereabouts;      ///< of segments and their copies
  ManifestSources sources;
  /// Some rank looks after files that others count on: nobody can decide alone what may go. The
  /// same on all ranks.
  bool shares_files = false;
  /// There are bundles in the directories of versions: some rank looks after manifests of others.
  /// The same on all ranks.
  bool has_bundles = false;

  /// Where a rank looks for a manifest before it asks others: not in all places of a large job.
  store::Tier& home() const { return global ? *sight : *tier; }
};

/// Collective. All ranks get a claim or the same error. Nothing but directories and lock files is
/// written before it is sure that the store is free, of one piece, and this application's.
Result<Claim> claim_store(Surroundings& around, const ClaimRequest& request);

/// busy if a later run has claimed the store: ranks may outlive a killed job by seconds.
Result<void> check_still_ours(store::Tier& tier, Run run);

}  // namespace belay::vote
