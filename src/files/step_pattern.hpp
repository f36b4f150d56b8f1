// SPDX-License-Identifier: Apache-2.0
// Which files belong to which step of an application, told by their names.
#pragma once

#include <belay/result.hpp>

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

namespace belay::files {

struct StepMatch {
  std::optional<std::uint64_t> step;
  std::optional<std::uint64_t> rank;
  std::string alias;  ///< the path with `{step}` in place of the number
};

/// `restart.{step}.{rank}.h5`: `{step}` and `{rank}` are numbers, `*` is anything but '/', the same
/// placeholder has the same number everywhere.
class StepPattern {
 public:
  /// Every path, with neither step nor rank.
  StepPattern() = default;
  /// invalid_argument: an unknown placeholder, or a text that is too long.
  static Result<StepPattern> parse(const std::string& text);

  std::optional<StepMatch> match(const std::string& path) const;
  bool has_rank() const { return !ranks_.empty(); }
  bool goes_below() const { return text_.empty() || text_.find('/') != std::string::npos; }

 private:
  std::string text_;  ///< empty: every path
  std::regex regex_;
  std::vector<std::size_t> steps_;  ///< groups of the regular expression
  std::vector<std::size_t> ranks_;
};

}  // namespace belay::files
