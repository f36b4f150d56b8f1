// SPDX-License-Identifier: Apache-2.0
// The variables of a packed version, and what people call them.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "files/contents.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace belay::files {

/// What the table of contents and the manifest say of a variable.
struct PackedVariable {
  std::string name;  ///< of its region, but for the number of a part
  std::size_t file = 0;
  std::string variable;  ///< empty: bytes of the file that belong to none
  ArrayType array;
  std::uint64_t bytes = 0;           ///< that it takes in the file
  std::vector<std::string> regions;  ///< that it is stored as; none: it is in the file's skeleton
};

/// Each once: those with regions in the order of the manifest, then those of skeletons, file by
/// file. Regions that the table does not name are left out.
std::vector<PackedVariable> variables_of(const Contents& contents, const Manifest& manifest);

struct FoundVariable {
  std::size_t file = 0;
  std::string variable;
};

/// By the name of its region, by `path:variable`, or by the variable alone if only one file has it.
/// A path that names an HDF5 file of the table and anything behind the colon will do: what is not
/// in the table may still be a dataset. Unset: nothing is called so. invalid_argument: several are.
Result<std::optional<FoundVariable>> find_variable(const Contents& contents,
                                                   const Manifest& manifest,
                                                   const std::string& name);

}  // namespace belay::files
