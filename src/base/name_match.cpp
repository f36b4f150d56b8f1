// SPDX-License-Identifier: Apache-2.0
#include "base/name_match.hpp"

#include "base/try.hpp"

#include <regex>

namespace belay {
namespace {

// std::regex recurses for each character, and takes exponential time where it can.
constexpr std::size_t kMostPatternBytes = 200;
constexpr std::size_t kMostMatchedBytes = 200;

}  // namespace

struct NameMatch::Rule {
  std::regex regex;
  std::string replacement;
};

Result<NameMatch> NameMatch::parse(const std::string& text) {
  std::size_t split = text.find('=');
  while (split != std::string::npos && split > 0 && text[split - 1] == '\\')
    split = text.find('=', split + 1);
  if (split == std::string::npos || split == 0)
    return fail(Code::invalid_argument, "must be REGEX=REPLACEMENT, such as _[0-9]+$=");
  if (text.size() > kMostPatternBytes)
    return fail(Code::invalid_argument, "more than {} bytes are too many", kMostPatternBytes);
  NameMatch match;
  try {
    match.rule_ = std::make_shared<const Rule>(
        Rule{std::regex(text.substr(0, split), std::regex::ECMAScript), text.substr(split + 1)});
  } catch (const std::regex_error& error) {
    return fail(Code::invalid_argument, "no regular expression: {}", error.what());
  }
  match.text_ = text;
  return match;
}

std::string NameMatch::key(const std::string& variable) const {
  if (!rule_ || variable.size() > kMostMatchedBytes) return variable;
  try {
    return std::regex_replace(variable, rule_->regex, rule_->replacement);
  } catch (const std::regex_error&) {
    return variable;  // too complex for this name: it stays as it is
  }
}

}  // namespace belay
