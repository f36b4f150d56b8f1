// SPDX-License-Identifier: Apache-2.0
#include "files/region_names.hpp"

#include "base/nouns.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "format/checksum.hpp"

namespace belay::files {
namespace {

constexpr std::size_t kFrontBytes = 200;
// std::regex recurses for each character, and takes exponential time where it can.
constexpr std::size_t kMostPatternBytes = 200;
constexpr std::size_t kMostMatchedBytes = 200;

/// Only what is a good name wherever it is cut.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, kFrontBytes)) result += c >= ' ' && c <= '~' ? c : '_';
  return result;
}

std::string hash_of(std::string_view text, int attempt) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return fmt::format("{:016x}", format::checksum64(bytes) + static_cast<std::uint64_t>(attempt));
}

}  // namespace

std::string RegionNames::name(const std::string& path, const std::string& variable) {
  const std::string wanted = path + ":" + variable;
  if (!name_flaw(wanted) && taken_.insert(wanted).second) return wanted;
  // The length of the path tells apart what only the colon's place does.
  const std::string all = fmt::format("{}:{}", path.size(), wanted);
  for (int attempt = 0;; ++attempt) {
    const std::string other = plain(wanted) + "~" + hash_of(all, attempt);
    if (taken_.insert(other).second) return other;
  }
}

Result<VariableMatch> VariableMatch::parse(const std::string& text) {
  std::size_t split = text.find('=');
  while (split != std::string::npos && split > 0 && text[split - 1] == '\\')
    split = text.find('=', split + 1);
  if (split == std::string::npos || split == 0)
    return fail(Code::invalid_argument, "--match {}: write it as REGEX=REPLACEMENT",
                in_quotes(text));
  if (text.size() > kMostPatternBytes)
    return fail(Code::invalid_argument, "--match: more than {} bytes are too many",
                kMostPatternBytes);
  VariableMatch match;
  try {
    match.regex_ = std::regex(text.substr(0, split), std::regex::ECMAScript);
  } catch (const std::regex_error& error) {
    return fail(Code::invalid_argument, "--match {}: no regular expression: {}", in_quotes(text),
                error.what());
  }
  match.replacement_ = text.substr(split + 1);
  match.set_ = true;
  return match;
}

std::string VariableMatch::key(const std::string& variable) const {
  if (!set_ || variable.size() > kMostMatchedBytes) return variable;
  try {
    return std::regex_replace(variable, regex_, replacement_);
  } catch (const std::regex_error&) {
    return variable;  // too complex for this name: it stays as it is
  }
}

}  // namespace belay::files
