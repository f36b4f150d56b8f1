// SPDX-License-Identifier: Apache-2.0
// Headers of .npy files (NumPy's format 1.0).
#pragma once

#include "base/nouns.hpp"
#include "files/fields.hpp"

#include <string>

namespace belay::tool {

/// What NumPy will see.
struct NpyLayout {
  std::string dtype;  ///< "<f8"; "|V24" for opaque elements; "[('x', '<f8')]" for compounds
  std::vector<std::uint64_t> shape;
  bool flattened = false;  ///< the region's own shape does not fit its bytes, or NumPy's limits
};

/// `fields`: what the elements are made of. Names that NumPy or its format cannot take make them
/// opaque.
NpyLayout npy_layout(const RegionRecord& region, const std::vector<files::Field>& fields = {});

/// All that comes before the elements; a multiple of 64 bytes long.
std::string npy_header(const NpyLayout& layout);

}  // namespace belay::tool
