// SPDX-License-Identifier: Apache-2.0
// The file formats whose variables can be cut out: one finder each.
#pragma once

#include "files/fields.hpp"
#include "files/file_bytes.hpp"
#include "files/layout.hpp"

#include <functional>
#include <string>

namespace belay::files {

/// Finds out what format the file has, and where its variables lie. Files of no known format, and
/// those that are damaged, have no variables; `remark` says why. Formats are read by libraries that
/// a hostile file may crash or keep busy for ever: use find_layouts() (layout_child.hpp).
Layout find_layout(const SourceBytes& file);

/// HDF5, and so netCDF-4. unsupported in a build without the HDF5 library.
Result<Layout> find_hdf5_layout(const SourceBytes& file);
/// netCDF's classic formats CDF-1, CDF-2 and CDF-5.
Result<Layout> find_netcdf_layout(const SourceBytes& file);

/// An array in pieces of equal size: its records, among those of other variables.
struct PiecedArray {
  ArrayType array;
  Range first;
  std::uint64_t stride = 0;  ///< from one to the next
  std::uint64_t count = 0;
};

/// One of its variables, however small and in however many pieces, all of them in the file.
/// not_found: there is no such.
Result<PiecedArray> find_netcdf_variable(const SourceBytes& file, const std::string& name);

using BeginArray =
    std::function<Result<void>(const ArrayType& array, const std::vector<Field>& fields)>;

/// A dataset of an HDF5 file as the whole array that it is, whatever its layout and filters:
/// `begin` hears what it is and what its elements are made of, then `take` gets these in pieces, as
/// the file's type has them.
/// not_found: there is no such dataset in this file. unsupported: its elements are references or
/// of variable length, lie in other files, or need a filter that is not there. For a child, as
/// find_layout().
Result<void> read_hdf5_array(const std::string& path, const std::string& dataset,
                             const BeginArray& begin, const TakeBytes& take);

}  // namespace belay::files
