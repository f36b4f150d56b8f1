// SPDX-License-Identifier: Apache-2.0
// A driver of the HDF5 library that notes where the raw data of a chunk lies, instead of reading
// it: the library finds any chunk fast, but until 1.14 it lists them only in quadratic time.
#pragma once

#include "files/file_bytes.hpp"
#include "files/layout.hpp"

#include <hdf5.h>

#include <optional>

namespace belay::files {

/// Must outlive what it opens. One thread.
class Hdf5Witness {
 public:
  explicit Hdf5Witness(const SourceBytes& file) : file_(&file) {}
  Hdf5Witness(const Hdf5Witness&) = delete;
  Hdf5Witness& operator=(const Hdf5Witness&) = delete;

  /// As H5Fopen().
  hid_t open();
  /// Where the chunk that begins at this element lies in the file; a user block counts. Unset: it
  /// was never written, or nobody can tell.
  std::optional<Range> find_chunk(hid_t dataset, const hsize_t* place);

 private:
  friend struct WitnessDriver;

  const SourceBytes* file_;
  bool finding_ = false;
  std::optional<Range> raw_;  ///< what was asked for last
  std::vector<std::byte> chunk_;
};

}  // namespace belay::files
