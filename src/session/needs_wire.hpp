// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other between versions: what they need, and what they have lost.
#pragma once

#include "catalog/whereabouts.hpp"
#include "vote/holdings.hpp"

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace belay::session {

/// A file that should be there and is not, or not whole.
struct LostFile {
  SegmentId id;
  FileKind kind = FileKind::segment;
  catalog::Whereabouts::Place place = 0;
};

std::vector<std::byte> encode_needs(const vote::Needs& needs, const std::vector<LostFile>& lost);
std::pair<vote::Needs, std::vector<LostFile>> decode_needs(std::span<const std::byte> bytes);

}  // namespace belay::session
