// SPDX-License-Identifier: Apache-2.0
// What the ranks decide together about one version: who stores which blocks, and who keeps copies
// of them.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "base/settings.hpp"
#include "comm/group.hpp"
#include "dedup/frequent_blocks.hpp"
#include "dedup/node_layout.hpp"
#include "dedup/replication_plan.hpp"
#include "dedup/ring.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace belay::session {

/// Copies that one rank sends to another.
struct Parcel {
  Rank receiver = 0;
  std::uint64_t bytes = 0;
};

/// One rank's part in a version, as all ranks know it.
struct Share {
  std::uint64_t file_bytes = 0;     ///< of its segment; 0: it stores nothing
  std::uint64_t payload_bytes = 0;  ///< of the blocks in it
  std::uint64_t natural_bytes = 0;  ///< of the last of these, which need no parity
  std::vector<Parcel> parcels;
};

struct VersionPlan {
  dedup::Ring ring;
  dedup::ReplicationPlan blocks;
  std::vector<Share> shares;     ///< by rank
  std::vector<Rank> counted_on;  ///< other ranks that store blocks of this one, ascending

  /// The blocks that this rank stores, as they follow one another in its segment: natural ones
  /// last.
  std::vector<std::uint32_t> in_order() const;
  /// The ranks, on other nodes, that keep a copy of a rank's manifest.
  std::vector<Rank> manifest_keepers(const dedup::NodeLayout& layout, Rank owner) const;
  /// What all others send to a rank.
  std::vector<std::uint64_t> bytes_to(Rank receiver) const;
};

/// Collective. `brought` are this rank's blocks that must be stored; they and the layout must
/// outlive the plan. All ranks get a plan, or the same error.
Result<VersionPlan> plan_version(ranks::Group& group, const dedup::NodeLayout& layout,
                                 const Settings& settings, const Level& level,
                                 std::span<const dedup::Block> brought);

}  // namespace belay::session
