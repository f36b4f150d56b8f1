// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/table.hpp"

#include "base/text.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace belay::tool {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Characters, not bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::string aligned(std::string_view text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + std::string(text) : std::string(text) + space;
}

/// Seconds rounded down, so that times before 1970 have their nanoseconds counted upwards too.
std::pair<std::time_t, std::int64_t> split(std::int64_t time_ns) {
  std::int64_t seconds = time_ns / kSecond;
  if (time_ns % kSecond < 0) --seconds;
  return {static_cast<std::time_t>(seconds), time_ns - seconds * kSecond};
}

}  // namespace

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {}

void Table::add(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }

std::vector<std::string> Table::lines(bool colours, std::size_t indent) const {
  std::vector<std::string> shown;
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (const std::string& heading : headings_) {
    right.push_back(heading.starts_with('>'));
    widths.push_back(width_of(heading) - (right.back() ? 1 : 0));
  }
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i].text));
  const auto line = [&](const auto& cell_of) {
    std::string text(indent, ' ');
    for (std::size_t i = 0; i < headings_.size(); ++i) {
      const Cell cell = cell_of(i);
      const bool last = i + 1 == headings_.size();
      const std::string padded =
          last && !right[i] ? cell.text : aligned(cell.text, widths[i], right[i]);
      text += (i == 0 ? "" : "  ") + paint(padded, cell.colour, colours);
    }
    shown.push_back(text);
  };
  line([&](std::size_t i) { return Cell(headings_[i].substr(right[i] ? 1 : 0), Colour::bold); });
  for (const auto& row : rows_) line([&](std::size_t i) { return row[i]; });
  return shown;
}

std::string paint(std::string_view text, Colour colour, bool colours) {
  if (!colours || colour == Colour::none) return std::string(text);
  const char* code = colour == Colour::bold    ? "1"
                     : colour == Colour::dim   ? "2"
                     : colour == Colour::red   ? "31"
                     : colour == Colour::green ? "32"
                                               : "33";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

std::string printable(std::string_view text) {
  std::string shown;
  // in_quotes() cuts after 64 bytes and escapes quotes; piece by piece it does neither.
  for (std::size_t at = 0; at < text.size();) {
    std::size_t bytes = 1;
    while (bytes < 4 && at + bytes < text.size() &&
           (static_cast<unsigned char>(text[at + bytes]) & 0xC0u) == 0x80u)
      ++bytes;
    const std::string_view piece = text.substr(at, bytes);
    if (piece == "\"" || piece == "\\") {
      shown += piece;
    } else {
      const std::string quoted = in_quotes(piece);
      shown += quoted.substr(1, quoted.size() - 2);
    }
    at += bytes;
  }
  return shown;
}

std::string count_text(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

std::string local_time(std::int64_t time_ns) {
  const auto seconds = split(time_ns).first;
  std::tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

std::string utc_time(std::int64_t time_ns) {
  const auto [seconds, nanoseconds] = split(time_ns);
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z", parts, nanoseconds);
}

std::string duration(std::uint64_t time_ns) {
  const auto value = static_cast<double>(time_ns);
  if (value < 1e3) return fmt::format("{} ns", time_ns);
  if (value < 1e6) return fmt::format("{:.1f} us", value / 1e3);
  if (value < 1e9) return fmt::format("{:.2f} ms", value / 1e6);
  return fmt::format("{:.2f} s", value / 1e9);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string type_text(const ElementType& type) {
  const bool number = type.kind != ElementKind::bytes && type.kind != ElementKind::opaque;
  if (number && !type.name.empty())
    return fmt::format("{} {}", name_of(type.kind), printable(type.name));
  if (!type.name.empty()) return fmt::format("{} ({} bytes)", printable(type.name), type.bytes);
  if (type.kind == ElementKind::opaque) return fmt::format("opaque ({} bytes)", type.bytes);
  return name_of(type.kind);
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "single";
  return fmt::format("{}", fmt::join(shape.extents(), " x "));
}

}  // namespace belay::tool
