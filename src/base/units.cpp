// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include "base/settings.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <limits>
#include <span>

namespace belay {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor = 1;
};

constexpr std::uint64_t kSecond = 1000000000;

constexpr std::array kByteUnits = {
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"KiB", 1ull << 10},
    Unit{"MiB", 1ull << 20},
    Unit{"GiB", 1ull << 30},
    Unit{"TiB", 1ull << 40},
    Unit{"KB", 1000},
    Unit{"MB", 1000000},
    Unit{"GB", 1000000000},
    Unit{"TB", 1000000000000},
};

constexpr std::array kTimeUnits = {
    Unit{"", kSecond},         Unit{"ns", 1},
    Unit{"us", 1000},          Unit{"ms", 1000000},
    Unit{"s", kSecond},        Unit{"m", 60 * kSecond},
    Unit{"h", 3600 * kSecond}, Unit{"d", 86400 * kSecond},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

/// The floor of 0.<digits> * factor. Horner from the last digit is exact for any number of digits:
/// for a whole n, floor((n + floor(x)) / 10) = floor((n + x) / 10).
std::uint64_t scale_fraction(std::string_view digits, std::uint64_t factor) {
  std::uint64_t scaled = 0;
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit)
    scaled = (static_cast<std::uint64_t>(*digit - '0') * factor + scaled) / 10;
  return scaled;
}

std::optional<std::uint64_t> parse_quantity(std::string_view text, std::span<const Unit> units) {
  const auto whole = parse_count(take_digits(text));
  if (!whole) return {};
  std::string_view fraction;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take_digits(text);
    if (fraction.empty()) return {};
  }
  if (!text.empty() && text.back() == ' ') return {};
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& u) { return same_word(u.name, text); });
  if (unit == units.end()) return {};
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(*whole, unit->factor, &result) ||
      __builtin_add_overflow(result, scale_fraction(fraction, unit->factor), &result))
    return {};
  return result;
}

}  // namespace

std::optional<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t count = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, count);
  if (parsed.ec != std::errc() || parsed.ptr != end) return {};
  return count;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  return parse_quantity(text, kByteUnits);
}

std::optional<std::uint64_t> parse_time_ns(std::string_view text) {
  const auto time_ns = parse_quantity(text, kTimeUnits);
  if (!time_ns || *time_ns > std::numeric_limits<std::int64_t>::max()) return {};
  return time_ns;
}

std::string format_time_ns(std::uint64_t time_ns) {
  const auto unit = std::find_if(kTimeUnits.rbegin(), kTimeUnits.rend(), [&](const Unit& u) {
    return time_ns >= u.factor && time_ns % u.factor == 0;
  });
  if (unit == kTimeUnits.rend()) return "0s";
  return fmt::format("{}{}", time_ns / unit->factor, unit->name);
}

std::string format_bytes(std::uint64_t bytes) {
  constexpr std::array kNames = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t name = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && name + 1 < kNames.size()) {
    value /= 1024;
    ++name;
  }
  return fmt::format("{:.1f} {}", value, kNames[name]);
}

}  // namespace belay
