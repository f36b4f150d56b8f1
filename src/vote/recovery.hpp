// SPDX-License-Identifier: Apache-2.0
// From what all ranks found to what they agree is there.
#pragma once

#include "base/nouns.hpp"
#include "store/retention.hpp"
#include "vote/survey.hpp"

#include <optional>
#include <vector>

namespace belay::vote {

struct Recovery {
  std::vector<store::KnownVersion> known;  ///< newest first; every version with a manifest anywhere
  std::vector<store::KnownVersion> global;  ///< those with a manifest on the global tier
  Version next_number = 1;                  ///< higher than any that was ever used
  bool settled = false;                     ///< a version has existed
  /// The newest version that all ranks can read; if there is none though one has existed, the
  /// newest of which any trace is left; empty only on a first start.
  std::optional<Version> latest;
};

/// The same on all ranks but for the segments of known versions. A version exists if all ranks can
/// read it, wherever, and exists on the global tier if the manifests of all are there.
Recovery recover(const OwnSurvey& own, const std::vector<Survey>& surveys, Rank rank);

}  // namespace belay::vote
