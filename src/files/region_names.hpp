// SPDX-License-Identifier: Apache-2.0
// Names of regions for variables of files, and the order in which these are captured.
#pragma once

#include <belay/result.hpp>

#include <regex>
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

/// Turns names of variables into what is the same for variables that are alike, such as
/// `temperature` for `temperature_00012`.
class VariableMatch {
 public:
  /// Everything is alike to itself only.
  VariableMatch() = default;
  /// `REGEX=REPLACEMENT`, split at the first `=` that no backslash precedes; ECMAScript, `$1` is
  /// the first group. invalid_argument if that is no regular expression.
  static Result<VariableMatch> parse(const std::string& text);

  std::string key(const std::string& variable) const;

 private:
  std::string replacement_;
  std::regex regex_;
  bool set_ = false;
};

}  // namespace belay::files
