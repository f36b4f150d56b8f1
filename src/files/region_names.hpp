// SPDX-License-Identifier: Apache-2.0
// Names of regions for variables of files.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace belay::files {

/// `path:variable`, cut and marked by a hash where it is too long, taken, or no good name. The same
/// calls in the same order give the same names.
class RegionNames {
 public:
  std::string name(const std::string& path, const std::string& variable);

 private:
  std::set<std::string> taken_;
};

}  // namespace belay::files
