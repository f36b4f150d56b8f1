// SPDX-License-Identifier: Apache-2.0
// The file formats whose variables can be cut out: one finder each.
#pragma once

#include "files/file_bytes.hpp"
#include "files/layout.hpp"

namespace belay::files {

/// Finds out what format the file has, and where its variables lie. Files of no known format, and
/// those that are damaged, have no variables; `remark` says why. Formats are read by libraries that
/// a hostile file may crash or keep busy for ever: use find_layouts() (layout_child.hpp).
Layout find_layout(const SourceBytes& file);

/// HDF5, and so netCDF-4. unsupported in a build without the HDF5 library.
Result<Layout> find_hdf5_layout(const SourceBytes& file);
/// netCDF's classic formats CDF-1, CDF-2 and CDF-5.
Result<Layout> find_netcdf_layout(const SourceBytes& file);

}  // namespace belay::files
