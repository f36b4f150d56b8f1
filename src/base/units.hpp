// SPDX-License-Identifier: Apache-2.0
// Numbers, sizes and times as people write them. Units are taken in any case, with or without a
// space before them; fractions are rounded down to whole bytes or nanoseconds. What is malformed
// or does not fit is refused by returning nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace belay {

/// Decimal digits only.
std::optional<std::uint64_t> parse_count(std::string_view text);

/// `16384`, `512B`, `16KiB`, `1.5 GiB`, `200MB`: B, KiB to TiB (powers of 1024), KB to TB (of
/// 1000).
std::optional<std::uint64_t> parse_bytes(std::string_view text);

/// `500ms`, `30s`, `1.5h`: ns, us, ms, s, m, h, d; a plain number is seconds. At most 292 years,
/// so that a time added to any reading of a clock does not overflow.
std::optional<std::uint64_t> parse_time_ns(std::string_view text);

/// Exact, in the largest unit that divides it: 90000000000 -> "90s". parse_time_ns() reads it back.
std::string format_time_ns(std::uint64_t time_ns);

}  // namespace belay
