// SPDX-License-Identifier: Apache-2.0
#include "files/region_names.hpp"

#include "base/nouns.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "format/checksum.hpp"

namespace belay::files {
namespace {

constexpr std::size_t kFrontBytes = 200;

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

}  // namespace belay::files
