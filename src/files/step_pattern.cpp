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
  const auto add_number = [&](std::vector<std::size_t>& places) {
    places.push_back(++groups);
    regex += "([0-9]{1,18})";
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (rest.starts_with("{step}")) {
      add_number(pattern.steps_);
      i += 5;
    } else if (rest.starts_with("{rank}")) {
      add_number(pattern.ranks_);
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
  const auto number = [&](const std::vector<std::size_t>& places) -> std::optional<std::uint64_t> {
    for (const std::size_t place : places)
      if (found[place].str() != found[places.front()].str()) return {};
    return places.empty() ? std::nullopt : parse_count(found[places.front()].str());
  };
  StepMatch result{.step = number(steps_), .rank = number(ranks_), .alias = path};
  if (result.step.has_value() == steps_.empty() || result.rank.has_value() == ranks_.empty())
    return {};  // the same placeholder has different numbers
  for (auto place = steps_.rbegin(); place != steps_.rend(); ++place)
    result.alias.replace(static_cast<std::size_t>(found.position(*place)),
                         static_cast<std::size_t>(found.length(*place)), "{step}");
  return result;
}

}  // namespace belay::files
