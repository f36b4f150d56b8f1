// SPDX-License-Identifier: Apache-2.0
// HDF5's types and Belay's.
#pragma once

#include <belay/types.hpp>

#include "files/fields.hpp"

#include <hdf5.h>

#include <cstdint>
#include <vector>

namespace belay::files {

/// IEEE and two's-complement numbers of either byte order, enumerations and bits of these, complex
/// numbers as h5py writes them, and arrays of all that; opaque else. The name tells the byte order,
/// or what an opaque element is.
ElementType element_type_of(hid_t type);

/// Extents of a dataset or attribute; none of a single value.
std::vector<std::uint64_t> extents_of(hid_t space);

/// Those of the elements themselves come last, if these are arrays.
std::vector<std::uint64_t> with_inner_extents(std::vector<std::uint64_t> extents, hid_t type);

/// What a dataset is as a whole, those of its elements included; of elements that belay has no
/// shape for, as many opaque ones.
ArrayType array_type_of(hid_t type, hid_t space);

/// The members of a compound, or of arrays of such; none of what element_type_of() calls a number.
std::vector<Field> fields_of(hid_t type);

}  // namespace belay::files
