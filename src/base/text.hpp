// SPDX-License-Identifier: Apache-2.0
// Words and names that come from people: compared, checked, and shown safely.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace belay {

/// Equal but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);

/// In quotes, with everything escaped that is not printable UTF-8, and cut with "..." after about
/// 64 bytes: safe for any log or terminal.
std::string in_quotes(std::string_view text);

/// `one`, `one or two`, `one, two or three`.
std::string either_of(std::span<const std::string_view> words);

/// The word with the fewest insertions, deletions and replacements, whatever the case; the first
/// of equals. REQUIRES: candidates is not empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// What check_name() accepts, for messages.
inline constexpr std::string_view kNameRule = "1 to 255 bytes of UTF-8 without control characters";

/// What check_name() would complain about, such as "is empty"; nothing if the name is good.
std::optional<std::string> name_flaw(std::string_view name);

}  // namespace belay
