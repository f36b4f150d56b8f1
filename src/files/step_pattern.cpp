// SPDX-License-Identifier: Apache-2.0
#include "files/step_pattern.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

#include <string_view>

namespace belay::files {
namespace {

constexpr std::size_t kMostPatternBytes = 200;
constexpr std::size_t kMostPathBytes = 1000;  // std::regex recurses for each character

std::string escaped(char c) {
  constexpr std::string_view kSpecial = R"(^$\.*+?()[]{}|)";
  return kSpecial.find(c) == std::string_view::npos ? std::string(1, c) : std::string("\\") + c;
}

}  // namespace

Result<StepPattern> StepPattern::parse(const std::string& text) {
  if (text.empty() || text.size() > kMostPatternBytes)
    return fail(Code::invalid_argument, "pattern {}: 1 to {} bytes are allowed", in_quotes(text),
                kMostPatternBytes);
  StepPattern pattern;
  pattern.text_ = text;
  std::string regex;
  std::size_t groups = 0;
  const auto number = [&](std::size_t& group) {
    if (group > 0) return "\\" + std::to_string(group);
    group = ++groups;
    return std::string("([0-9]{1,18})");
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("{step}")) {
      regex += number(pattern.step_group_);
      i += 5;
    } else if (rest.starts_with("{rank}")) {
      regex += number(pattern.rank_group_);
      i += 5;
    } else if (text[i] == '{') {
      return fail(Code::invalid_argument, "pattern {}: only {{step}} and {{rank}} are known",
                  in_quotes(text));
    } else {
      regex += text[i] == '*' ? "[^/]*" : escaped(text[i]);
    }
  }
  pattern.regex_ = std::regex(regex, std::regex::ECMAScript);
  return pattern;
}

std::optional<StepMatch> StepPattern::match(const std::string& path) const {
  if (text_.empty()) return StepMatch{.step = {}, .rank = {}, .alias = path};
  std::smatch found;
  if (path.size() > kMostPathBytes || !std::regex_match(path, found, regex_)) return {};
  StepMatch result{.step = {}, .rank = {}, .alias = path};
  if (rank_group_ > 0) result.rank = parse_count(found[rank_group_].str());
  if (step_group_ == 0) return result;
  result.step = parse_count(found[step_group_].str());
  const auto at = static_cast<std::size_t>(found.position(step_group_));
  result.alias.replace(at, static_cast<std::size_t>(found.length(step_group_)), "{step}");
  return result;
}

}  // namespace belay::files
