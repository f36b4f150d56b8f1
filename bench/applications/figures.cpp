// SPDX-License-Identifier: Apache-2.0
#include "applications/findings.hpp"
#include "applications/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace belay::bench {
namespace {

constexpr std::array<const char*, 4> kColours = {"#1b6ca8", "#d1495b", "#edae49", "#3c8d5a"};
constexpr const char* kGrid = "#dddddd";
constexpr int kBlock = 16384;

std::string name_of(const Json& application) { return application.at("application"); }

std::string colour_of(std::size_t application) { return kColours[application % kColours.size()]; }

/// Versions from below to above, ranks from left to right.
void draw_share_panel(Svg& svg, const Json& application, double left, double top, double width,
                      double height) {
  const Json& versions = application.at("versions");
  const auto rows = versions.size() - 1;
  const auto ranks = application.at("ranks").get<std::size_t>();
  const double cell_width = width / static_cast<double>(ranks);
  const double cell_height = height / static_cast<double>(rows);
  svg.text(left + width / 2, top - 12, name_of(application), {15, "middle", "#111"});
  for (std::size_t i = 1; i < versions.size(); ++i) {
    const double y = top + height - static_cast<double>(i) * cell_height;
    const Json& shares = versions[i].at("changed_share");
    for (std::size_t rank = 0; rank < ranks; ++rank)
      svg.rectangle(left + static_cast<double>(rank) * cell_width, y, cell_width + 0.5,
                    cell_height + 0.5, heat_colour(std::clamp(shares[rank].get<double>(), 0., 1.)));
    if (i == 1 || i == rows || (i - 1) % std::max<std::size_t>(1, rows / 5) == 0)
      svg.text(left - 6, y + cell_height / 2 + 4,
               std::to_string(versions[i].at("step").get<long>()), {11, "end"});
  }
  for (std::size_t rank = 0; rank < ranks; ++rank)
    svg.text(left + (static_cast<double>(rank) + 0.5) * cell_width, top + height + 16,
             std::to_string(rank), {11, "middle"});
  svg.text(left + width / 2, top + height + 34, "rank", {12, "middle"});
}

void draw_shares(const Json& applications, const std::filesystem::path& path) {
  const double width = 170, height = 260, gap = 66, top = 78;
  Svg svg(60 + static_cast<double>(applications.size()) * (width + gap) + 50, top + height + 56);
  svg.text(24, 30, "Share of each rank's bytes that changed since the version before", {17});
  double left = 70;
  for (const Json& application : applications) {
    draw_share_panel(svg, application, left, top, width, height);
    left += width + gap;
  }
  svg.text(20, top + height / 2, "step of the version", {12, "middle", "#333", false});
  for (int i = 0; i < 100; ++i)
    svg.rectangle(left - 30, top + height * (99 - i) / 100, 16, height / 100 + 0.5,
                  heat_colour(i / 99.));
  for (const int percent : {0, 50, 100})
    svg.text(left - 8, top + height - height * percent / 100 + 4, fmt::format("{} %", percent),
             {11});
  svg.write(path);
}

std::string size_name(int log2) {
  return log2 >= 20 ? fmt::format("{} MiB", 1 << (log2 - 20))
                    : fmt::format("{} KiB", 1 << (log2 - 10));
}

/// How many of the changed bytes lie in runs up to a size.
std::vector<std::pair<double, double>> distribution(const Json& rows) {
  double all = 0, so_far = 0;
  for (const Json& row : rows) all += row.at("bytes").get<double>();
  std::vector<std::pair<double, double>> points;
  for (const Json& row : rows) {
    const double log = std::log2(row.at("up_to_bytes").get<double>());
    points.emplace_back(log - 1, so_far / all);
    so_far += row.at("bytes").get<double>();
    points.emplace_back(log, so_far / all);
  }
  return points;
}

void draw_runs(const Json& applications, const std::filesystem::path& path) {
  const double left = 70, top = 60, width = 560, height = 300;
  const int first = 13, last = 25;
  Svg svg(820, 430);
  svg.text(24, 30, "Changed bytes by the length of the runs in which they lie", {17});
  const auto x_of = [&](double log) {
    return left + width * std::clamp((log - first) / (last - first), 0., 1.);
  };
  const auto y_of = [&](double share) { return top + height * (1 - share); };
  for (int percent = 0; percent <= 100; percent += 25) {
    svg.line(left, y_of(percent / 100.), left + width, y_of(percent / 100.), kGrid);
    svg.text(left - 8, y_of(percent / 100.) + 4, fmt::format("{} %", percent), {11, "end"});
  }
  for (int log = first; log <= last; log += 2) {
    svg.line(x_of(log), top, x_of(log), top + height, kGrid);
    svg.text(x_of(log), top + height + 18, size_name(log), {11, "middle"});
  }
  svg.text(left + width / 2, top + height + 42, "length of a run of changed 16 KiB blocks",
           {12, "middle"});
  double y = top + 20;
  for (std::size_t i = 0; i < applications.size(); ++i)
    for (const char* layout : {"arrays", "serialized"}) {
      const bool dashed = layout == std::string("serialized");
      std::vector<std::pair<double, double>> points = {{left, y_of(0)}};
      for (const auto& [log, share] : distribution(applications[i].at("runs").at(layout)))
        points.emplace_back(x_of(log), y_of(share));
      points.emplace_back(left + width, y_of(1));
      svg.curve(points, colour_of(i), dashed);
      svg.curve({{left + width + 20, y - 4}, {left + width + 52, y - 4}}, colour_of(i), dashed);
      svg.text(left + width + 60, y, name_of(applications[i]) + (dashed ? ", serialized" : ""));
      y += 24;
    }
  svg.write(path);
}

struct Bars {
  const char* title;
  const char* key;
};

/// Full versions are 100 %.
void draw_bars(Svg& svg, const Json& findings, const Bars& bars, double left, double top) {
  const double width = 380, height = 260;
  const Json& applications = findings.at("applications");
  svg.text(left + width / 2, top - 26, bars.title, {14, "middle", "#111"});
  for (int percent = 0; percent <= 120; percent += 20) {
    const double y = top + height * (1 - percent / 120.);
    svg.line(left, y, left + width, y, percent == 100 ? "#888888" : kGrid);
    svg.text(left - 8, y + 4, fmt::format("{} %", percent), {11, "end"});
  }
  const double group = width / static_cast<double>(applications.size());
  for (std::size_t i = 0; i < applications.size(); ++i) {
    double x = left + static_cast<double>(i) * group + group * 0.15;
    for (const auto& [layout, colour] :
         {std::pair("arrays", "#1b6ca8"), {"serialized", "#edae49"}}) {
      const Json& row = row_of(findings.at("summary"), name_of(applications[i]), layout, kBlock);
      const double share = row.at(bars.key).get<double>();
      const double tall = height * std::min(share, 1.2) / 1.2;
      svg.rectangle(x, top + height - tall, group * 0.32, tall, colour);
      svg.text(x + group * 0.16, top + height - tall - 5, fmt::format("{:.0f}", 100 * share),
               {11, "middle"});
      x += group * 0.36;
    }
    svg.text(left + (static_cast<double>(i) + 0.5) * group, top + height + 18,
             name_of(applications[i]), {13, "middle"});
  }
}

void draw_costs(const Json& findings, const std::filesystem::path& path) {
  Svg svg(920, 424);
  svg.text(24, 30, "Differential versions against full ones, over the run", {17});
  draw_bars(svg, findings, {"bytes written", "written_share"}, 60, 94);
  draw_bars(svg, findings, {"time until durable", "durable_per_full"}, 510, 94);
  svg.rectangle(300, 396, 14, 14, "#1b6ca8");
  svg.text(320, 408, "a region for each array");
  svg.rectangle(490, 396, 14, 14, "#edae49");
  svg.text(510, 408, "everything serialized into one");
  svg.write(path);
}

}  // namespace

void draw_figures(const Json& findings, const std::filesystem::path& directory) {
  draw_shares(findings.at("applications"), directory / "applications-share.svg");
  draw_runs(findings.at("applications"), directory / "applications-runs.svg");
  draw_costs(findings, directory / "applications-cost.svg");
}

}  // namespace belay::bench
