// SPDX-License-Identifier: Apache-2.0
#include "applications/svg.hpp"

#include "measure/must.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

namespace belay::bench {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

}  // namespace

Svg::Svg(double width, double height) : width_(width), height_(height) {
  rectangle(0, 0, width, height, "#ffffff");
}

void Svg::rectangle(double x, double y, double width, double height, const std::string& colour) {
  body_ += fmt::format("<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='{}'/>\n",
                       x, y, width, height, colour);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& colour) {
  body_ += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n", x1,
                       y1, x2, y2, colour);
}

void Svg::curve(const std::vector<std::pair<double, double>>& points, const std::string& colour,
                bool dashed) {
  body_ += "<polyline points='";
  for (const auto& [x, y] : points) body_ += fmt::format("{:.1f},{:.1f} ", x, y);
  body_ += fmt::format("' fill='none' stroke='{}' stroke-width='2.2'{}/>\n", colour,
                       dashed ? " stroke-dasharray='6 4'" : "");
}

void Svg::text(double x, double y, const std::string& text, const TextStyle& style) {
  const std::string turn =
      style.upright ? "" : fmt::format(" transform='rotate(-90 {:.1f} {:.1f})'", x, y);
  body_ += fmt::format(
      "<text x='{:.1f}' y='{:.1f}' font-size='{}' text-anchor='{}' fill='{}'{}>{}"
      "</text>\n",
      x, y, style.size, style.anchor, style.colour, turn, escaped(text));
}

void Svg::write(const std::filesystem::path& path) const {
  std::ofstream file(path);
  file << fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
      "font-family='Helvetica, Arial, sans-serif'>\n<!-- SPDX-License-Identifier: Apache-2.0 -->\n",
      width_, height_);
  file << body_ << "</svg>\n";
  file.close();
  if (!file)
    die("cannot write " + path.string() + "; name a file in a writable directory with --json");
}

std::string heat_colour(double share) {
  static constexpr std::array<std::array<double, 3>, 9> kStops = {{{0, 0, 4},
                                                                   {27, 12, 65},
                                                                   {74, 12, 107},
                                                                   {120, 28, 109},
                                                                   {165, 44, 96},
                                                                   {207, 68, 70},
                                                                   {237, 105, 37},
                                                                   {251, 164, 10},
                                                                   {252, 245, 150}}};
  const double place = share * (kStops.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
  const double rest = place - static_cast<double>(stop);
  std::array<int, 3> colour = {};
  for (std::size_t i = 0; i < 3; ++i)
    colour[i] = static_cast<int>(
        std::lround(kStops[stop][i] + rest * (kStops[stop + 1][i] - kStops[stop][i])));
  return fmt::format("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]);
}

}  // namespace belay::bench
