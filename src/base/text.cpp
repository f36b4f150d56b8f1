// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include "base/settings.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace belay {
namespace {

constexpr std::size_t kShownBytes = 64;
constexpr std::size_t kComparedBytes = 64;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: not UTF-8
};

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

/// The first character. REQUIRES: text is not empty.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead < 0xC2   ? 0
                            : lead < 0xE0 ? 2
                            : lead < 0xF0 ? 3
                            : lead < 0xF5 ? 4
                                          : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = lead & (0x7Fu >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    if (!is_continuation(c)) return {};
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[bytes] || code > 0x10FFFF || surrogate) return {};
  return {code, bytes};
}

bool is_control(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(a[i]) == lower(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

std::string in_quotes(std::string_view text) {
  std::string shown = "\"";
  std::size_t at = 0;
  while (at < text.size() && at < kShownBytes) {
    const auto [code, bytes] = first_character(text.substr(at));
    if (bytes == 0 || is_control(code)) {
      const std::size_t escaped = std::max<std::size_t>(bytes, 1);
      for (const char c : text.substr(at, escaped))
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      at += escaped;
      continue;
    }
    if (code == '"' || code == '\\') shown += '\\';
    shown += text.substr(at, bytes);
    at += bytes;
  }
  shown += at < text.size() ? "...\"" : "\"";
  return shown;
}

std::string either_of(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  // A hostile name may be a megabyte long; what lies past any option's length decides nothing.
  word = word.substr(0, kComparedBytes);
  return *std::min_element(candidates.begin(), candidates.end(),
                           [&](std::string_view a, std::string_view b) {
                             return edit_distance(word, a) < edit_distance(word, b);
                           });
}

std::optional<std::string> name_flaw(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) return fmt::format("has {} bytes", name.size());
  for (std::size_t at = 0; at < name.size();) {
    const auto [code, bytes] = first_character(name.substr(at));
    if (bytes == 0) return fmt::format("is not UTF-8 at byte {}", at);
    if (is_control(code)) return fmt::format("has a control character at byte {}", at);
    at += bytes;
  }
  return {};
}

Result<void> check_name(std::string_view what, std::string_view name) {
  if (const auto flaw = name_flaw(name))
    return fail(Code::invalid_argument, "{} name {} {}; a name is {}", what, in_quotes(name), *flaw,
                kNameRule);
  return {};
}

}  // namespace belay
