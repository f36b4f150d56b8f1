// SPDX-License-Identifier: Apache-2.0
// Variables of packed files, read as the whole arrays that they are.
#pragma once

#include <belay/result.hpp>

#include "files/child.hpp"
#include "files/contents.hpp"
#include "files/fields.hpp"
#include "files/file_bytes.hpp"
#include "files/formats.hpp"
#include "files/region_source.hpp"

#include <optional>
#include <string>
#include <vector>

namespace belay::files {

/// Of HDF5 files a child lets the HDF5 library read them, over a file with the bytes that it needs.
/// One thread; the process must have no other. The source and the file must outlive it.
class VariableReader {
 public:
  /// Errors as those of read_hdf5_array(), and corruption where bytes are lost.
  static Result<VariableReader> open(RegionSource& source, const PackedFile& file,
                                     const std::string& variable);

  const ArrayType& array() const { return array_; }
  /// What its elements are made of, where they are compounds; are_fields() holds.
  const std::vector<Field>& fields() const { return fields_; }
  /// All its bytes, in the order of the array. REQUIRES: was not called before.
  Result<void> read(const TakeBytes& take);

 private:
  VariableReader(RegionSource& source, const PackedFile& file, std::string variable)
      : source_(&source), file_(&file), variable_(std::move(variable)) {}
  std::vector<const PackedRegion*> regions() const;
  bool is_stored_as_it_is() const;
  Result<void> open_array();
  Result<void> open_regions();
  Result<void> open_hdf5();
  Result<void> open_netcdf();
  Result<void> read_pieces(const TakeBytes& take) const;
  bool is_in_skeleton() const;
  Result<void> fill_image(int descriptor) const;
  Result<std::vector<std::byte>> hear();

  RegionSource* source_;
  const PackedFile* file_;
  std::string variable_;
  ArrayType array_;
  std::vector<Field> fields_;
  std::optional<Child> child_;        ///< reads it with the HDF5 library
  std::optional<SourceBytes> image_;  ///< has it in pieces; else the regions are the array
  PiecedArray pieces_;
};

}  // namespace belay::files
