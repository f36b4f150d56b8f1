// SPDX-License-Identifier: Apache-2.0
// What a manifest needs of segments, found without holding the tables of either.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "session/drain_share.hpp"
#include "store/manifest_table.hpp"
#include "store/segment_table.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace belay::session {

/// A segment, and what is needed of it.
struct LiveSegment {
  SegmentId id;
  std::shared_ptr<const store::SegmentTable> table;
  std::vector<bool> needed;          ///< by block
  std::vector<RegionRun> runs = {};  ///< by rising block
};

/// What blocks of this segment have as their holder; unset: none has.
std::optional<std::uint8_t> holder_of(const Manifest& head, const SegmentId& id);

/// Sets `needed` where the manifest needs a block, and says which regions they are of. It takes
/// about half of the memory. corruption if one that the manifest counts on is not there; `failed`
/// is the segment that is to blame.
Result<void> mark_live(const store::ManifestTable& manifest, std::vector<LiveSegment>& segments,
                       std::uint64_t memory_bytes, std::optional<std::size_t>& failed);

}  // namespace belay::session
