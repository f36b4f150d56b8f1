// SPDX-License-Identifier: Apache-2.0
// Which variables are alike though their names differ.
#pragma once

#include <belay/result.hpp>

#include <memory>
#include <string>

namespace belay {

/// Turns names of variables into what is the same for variables that are alike, such as
/// `temperature` for `temperature_00012`.
class NameMatch {
 public:
  /// Everything is alike to itself only.
  NameMatch() = default;
  /// `REGEX=REPLACEMENT`, split at the first `=` that no backslash precedes; ECMAScript, `$1` is
  /// the first group. invalid_argument if that is no regular expression.
  static Result<NameMatch> parse(const std::string& text);

  std::string key(const std::string& variable) const;
  const std::string& text() const { return text_; }  ///< what was parsed; empty: nothing

 private:
  struct Rule;

  std::string text_;
  std::shared_ptr<const Rule> rule_;
};

}  // namespace belay
