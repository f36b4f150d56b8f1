// SPDX-License-Identifier: Apache-2.0
// Casting a vote, and clearing away what no vote needs any more.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "store/file_writer.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::vote {

/// Writes the manifest, makes everything that it names durable, and publishes it: from then on this
/// rank has voted. Returns the bytes written. `segment` is the version's own, complete but not yet
/// durable (nullptr: none, or durable): made so together with the manifest it costs less. `buffer`
/// is aligned memory. `visible` is set as soon as others may see the manifest, whether or not this
/// succeeds.
/// REQUIRES: the contents of every other segment that the manifest names are durable.
Result<std::uint64_t> publish(store::Tier& tier, const Manifest& manifest,
                              store::FileWriter* segment, std::span<std::byte> buffer,
                              bool& visible);

/// Files that may go. Manifests go first and durably, so that no manifest ever names a segment that
/// was removed on purpose.
struct Retired {
  std::vector<SegmentId> manifests;  ///< by version and rank: this rank's, and those it keeps
  std::vector<SegmentId> segments;
  std::vector<SegmentId> copies;
  std::vector<SegmentId> shards;
  std::vector<SegmentId> bundles;
  std::vector<std::string> others;  ///< temporaries, run records of earlier runs

  void add(const Retired& more);
  bool empty() const {
    return manifests.empty() && segments.empty() && copies.empty() && shards.empty() &&
           bundles.empty() && others.empty();
  }
};

/// Returns what could not be removed, which is logged too; manifests also if that is not durable.
/// `reuse`: blocks and parity are retired (Tier::retire()), so that the caller must drop them some
/// time.
Retired remove_retired(store::Tier& tier, const Retired& retired, Log& log, bool reuse = false);
/// Removes what that left for new files; of what cannot go now, `log` hears.
void drop_retired(store::Tier& tier, Log& log);

/// Leaves the mark that a version of this store has existed. prepare_settled() does all of it that
/// needs space, so that a disk which is full by then does not matter.
Result<void> prepare_settled(store::Tier& tier, const RunRecord& record);
Result<void> mark_settled(store::Tier& tier, const RunRecord& record);
/// Leaves the mark that this run has ended, and that `last` was its last number.
Result<void> mark_closed(store::Tier& tier, const RunRecord& record, Version last);

}  // namespace belay::vote
