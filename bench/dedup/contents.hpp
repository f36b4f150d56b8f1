// SPDX-License-Identifier: Apache-2.0
// What one rank has to save in the measurements of dedup.
#pragma once

#include "measure/saved_region.hpp"
#include "measure/team.hpp"

namespace belay::bench {

/// Four quarters, in pieces of 16 KiB that are mixed: common to all ranks, common to four
/// neighbours, of this rank alone, and of this rank but sixteen times each. The first quarter of
/// the ranks repeats nothing, and so has more to send than the others.
Arrays make_mix(const Team& team, std::uint64_t bytes);

/// No two blocks of any rank are equal.
Arrays make_distinct(const Team& team, std::uint64_t bytes);

}  // namespace belay::bench
