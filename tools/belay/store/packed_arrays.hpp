// SPDX-License-Identifier: Apache-2.0
// Variables of packed sets, where people ask for regions.
#pragma once

#include "files/packed_variables.hpp"
#include "files/variable_reader.hpp"
#include "inspect/region_change.hpp"
#include "inspect/region_encoding.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace belay::tool {

/// View and version must outlive it.
class PackedArrays {
 public:
  /// Null: the version is not one of a packed set.
  static Result<std::unique_ptr<PackedArrays>> open(const inspect::StoreView& view,
                                                    const inspect::VersionView& version);

  const std::vector<files::PackedVariable>& variables() const { return variables_; }
  /// Unset: no variable is called so. Errors as of find_variable() and VariableReader::open().
  Result<std::optional<files::VariableReader>> find(const std::string& name);
  Result<files::VariableReader> reader(const files::PackedVariable& variable);
  std::uint64_t stored_bytes(const files::PackedVariable& variable) const;
  /// The bytes that are stored of it, as they lay in its file.
  Result<void> read_stored(const files::PackedVariable& variable, const files::TakeBytes& take);

 private:
  PackedArrays(const inspect::StoreView& view, const inspect::VersionView& version,
               const inspect::PartView& part, files::Contents contents)
      : part_(part), contents_(std::move(contents)), source_(view, version, part) {}

  const inspect::PartView& part_;
  files::Contents contents_;
  files::RegionSource source_;
  std::vector<files::PackedVariable> variables_;
};

/// An array as if it were a region.
RegionRecord region_of(const std::string& name, const files::ArrayType& array);

/// A region and how it is stored, for `belay show`.
struct ShownRegion {
  inspect::RegionChange change;
  std::optional<inspect::RegionEncoding> encoding;
  bool in_skeleton = false;  ///< it has no blocks of its own
};

/// Regions of one variable become one, with the type and shape that it has as a whole. Variables
/// without regions come last.
std::vector<ShownRegion> join_variables(std::vector<ShownRegion> regions,
                                        const std::vector<files::PackedVariable>& variables);

}  // namespace belay::tool
