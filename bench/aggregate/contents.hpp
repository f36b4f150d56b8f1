// SPDX-License-Identifier: Apache-2.0
// What one rank has to save in the measurements of aggregation: typed regions.
#pragma once

#include "measure/saved_version.hpp"

namespace belay::bench {

struct Contents : SavedVersion {
  void protect_in(Session& session);  ///< REQUIRES: outlives the session
  void wipe();
  std::uint64_t checksum() const;
};

/// This rank's slab of a box in which a gas is stirred: waves of all lengths with the energies of
/// turbulence, and below them noise as roundoff leaves it. Density and energy in double precision,
/// the velocity in single, and a material in each cell.
Contents make_fields(const Team& team, std::uint64_t bytes);

}  // namespace belay::bench
