// SPDX-License-Identifier: Apache-2.0
// Text for people: columns, colours, sizes, times, and names that may be hostile.
#pragma once

#include <belay/stats.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace belay::tool {

enum class Colour { none, bold, dim, red, green, yellow };

struct Cell {
  std::string text;
  Colour colour = Colour::none;

  Cell(std::string shown, Colour painted = Colour::none)
      : text(std::move(shown)), colour(painted) {}
  Cell(const char* shown) : text(shown) {}
};

/// Rows of the same number of cells, aligned. A column whose heading starts with '>' is aligned to
/// the right.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  /// One line for each row, after the headings; `indent` spaces in front of each.
  std::vector<std::string> lines(bool colours, std::size_t indent = 0) const;

 private:
  std::vector<std::string> headings_;
  std::vector<std::vector<Cell>> rows_;
};

std::string paint(std::string_view text, Colour colour, bool colours);

/// With everything escaped that is not printable UTF-8: safe for any terminal.
std::string printable(std::string_view text);

/// "1 file", "2 files"; `many` where an s at the end is not enough: "2 copies".
std::string count_text(std::uint64_t count, std::string_view one, std::string_view many = {});

/// "2026-11-15 23:53:41", local time.
std::string local_time(std::int64_t time_ns);
/// "2026-11-15T22:53:41.123456789Z"
std::string utc_time(std::int64_t time_ns);
/// "1.24 ms"
std::string duration(std::uint64_t time_ns);
/// "12.3 %"; "-" of nothing.
std::string percent(std::uint64_t part, std::uint64_t whole);
/// "f64", "f64 big-endian", "Particle (24 bytes)"
std::string type_text(const ElementType& type);
/// "100 x 20"; "single" without dimensions.
std::string shape_text(const Shape& shape);

}  // namespace belay::tool
