// SPDX-License-Identifier: Apache-2.0
// A drawing in SVG: what figures need and no more. Coordinates are pixels from the upper left.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace belay::bench {

struct TextStyle {
  int size = 12;
  const char* anchor = "start";  ///< start, middle or end
  const char* colour = "#333";
  bool upright = true;  ///< else it runs upwards
};

class Svg {
 public:
  Svg(double width, double height);
  void rectangle(double x, double y, double width, double height, const std::string& colour);
  void line(double x1, double y1, double x2, double y2, const std::string& colour);
  void curve(const std::vector<std::pair<double, double>>& points, const std::string& colour,
             bool dashed);
  void text(double x, double y, const std::string& text, const TextStyle& style = {});
  /// Ends the program if it cannot.
  void write(const std::filesystem::path& path) const;

 private:
  std::string body_;
  double width_, height_;
};

/// From black over violet and orange to pale yellow, evenly brighter. REQUIRES: 0 <= share <= 1.
std::string heat_colour(double share);

}  // namespace belay::bench
