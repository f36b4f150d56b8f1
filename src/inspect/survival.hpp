// SPDX-License-Identifier: Apache-2.0
// Which losses of nodes versions survive now, given the files that are there.
#pragma once

#include <belay/result.hpp>

#include "inspect/block_givers.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace belay::inspect {

/// What a rank would lack.
struct LackingPart {
  Rank rank = 0;
  std::uint64_t blocks = 0;
  bool manifest = false;
};

struct DeadlyLoss {
  std::vector<std::size_t> nodes;  ///< sorted; none: the version is lost already
  std::vector<LackingPart> parts;  ///< the first few
  std::uint64_t ranks = 0;         ///< that lack something
  std::uint64_t blocks = 0;        ///< of all ranks
  std::uint64_t manifests = 0;
};

struct VersionSurvival {
  VersionKey key;
  VersionState state = VersionState::whole;
  Level level = {};
  bool global = false;
  bool dump = false;
  std::vector<std::uint32_t> sets = {};  ///< by node, as its stripes tell; empty: it has none
  std::vector<DeadlyLoss> deadly = {};   ///< all of those that were looked at

  bool lost_already() const { return !deadly.empty() && deadly.front().nodes.empty(); }
  /// Its level says that it survives so many.
  bool promises(std::size_t losses) const { return losses <= level.losses(); }
  /// ... or this loss, since no set of nodes loses more.
  bool promises(const DeadlyLoss& loss) const;
  bool breaks_promise() const;
};

struct SurvivalReport {
  std::size_t losses = 0;
  std::uint64_t sets = 0;                ///< of so many nodes; the largest number if there are more
  std::optional<std::uint64_t> sampled;  ///< so many of them were looked at; unset: all
  std::vector<VersionSurvival> versions;  ///< newest first, without those that lack votes

  /// No version falls short of what its level says.
  bool keeps_promises() const;
};

/// Looks at every set of `losses` nodes where those are at most `most_sets`, else at so many that
/// are drawn by lot, always the same ones, and at those that are known to be dangerous. What no set
/// of this size can hurt is known without looking. invalid_argument if there are not as many nodes.
Result<SurvivalReport> judge_losses(const StoreView& view, std::size_t losses,
                                    std::size_t most_sets = 10'000);

}  // namespace belay::inspect
