// SPDX-License-Identifier: Apache-2.0
// Regions of a version as datasets of an HDF5 file.
#pragma once

#include "tools/belay/store/store_arguments.hpp"

#include <optional>
#include <string>

namespace belay::tool {

struct Hdf5Extract {
  std::string file;
  std::string region;        ///< empty: all of them
  std::optional<Rank> rank;  ///< unset: all that have it
  bool force = false;
};

/// One group for each rank, one dataset for each region.
Result<Exit> extract_hdf5(Shell& shell, const Hdf5Extract& options, const inspect::StoreView& view,
                          const inspect::VersionView& version);

}  // namespace belay::tool
