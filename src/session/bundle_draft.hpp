// SPDX-License-Identifier: Apache-2.0
// From what ranks bring to what goes into their bundle: planned as a whole, or, of a rank whose
// tables are too large for memory, in chapters.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_writer.hpp"
#include "base/name_match.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "session/share_reader.hpp"

#include <cstdint>
#include <vector>

namespace belay::session {

struct BundleDraft {
  /// A segment that the bundle has blocks of.
  struct Source {
    Rank keeper = 0;  ///< who can read it
    SegmentId id;
    catalog::Whereabouts::Place place = 0;
  };
  std::vector<Source> sources;  ///< as the draft numbers them
  aggregate::Draft draft;
  aggregate::Portions portions;
};

/// What it may use, and what suits the bundle.
struct DraftMeans {
  std::uint64_t memory_bytes = 0;
  std::uint32_t block_bytes = 0;  ///< of the version
  unsigned encoders = 0;
  const NameMatch& match;
};

/// `group`, by rising rank, outlives the draft. REQUIRES: one whose tables do not fit is alone.
Result<BundleDraft> make_draft(std::vector<ShareReader>& group, const DraftMeans& means);

}  // namespace belay::session
