// SPDX-License-Identifier: Apache-2.0
#include "aggregate/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace belay::bench {
namespace {

constexpr double kMega = 1e6;
constexpr double kMebi = 1 << 20;
constexpr double kReadBound = 1.5;  ///< bytes read by a restart, for each that the version has

double number(const Json& row, const char* name) { return row.at(name).get<double>(); }

bool is(const Json& row, const std::string& contents, const std::string& name) {
  return row.at("contents") == contents && row.at("case") == name;
}

std::vector<std::string> contents_in(const Json& rows) {
  std::vector<std::string> all;
  for (const Json& row : rows) {
    const auto contents = row.at("contents").get<std::string>();
    if (std::find(all.begin(), all.end(), contents) == all.end()) all.push_back(contents);
  }
  return all;
}

std::string pace_of(const Json& row) {
  const auto rate = row.at("MBps").get<int>();
  return rate == 0 ? "the disk's" : fmt::format("{} MB/s", rate);
}

/// Aware against none at one bandwidth.
struct Duel {
  double bytes_per_s = 0;
  double ratio = 0;  ///< of their times
};

/// By rising bandwidth. The disk itself is among them if it is faster than all others: its
/// bandwidth is what none got from it.
std::vector<Duel> duels(const Json& rows, const std::string& contents, const char* time) {
  std::vector<Duel> all, disk;
  for (const Json& none : rows)
    for (const Json& aware : rows) {
      if (!is(none, contents, "none") || !is(aware, contents, "aware")) continue;
      if (none.at("MBps") != aware.at("MBps")) continue;
      const double got = number(none, "file_bytes") / number(none, time) * 1e3;
      auto& duel = none.at("MBps") == 0 ? disk : all;
      duel.push_back({none.at("MBps") == 0 ? got : number(none, "MBps") * kMega,
                      number(aware, time) / number(none, time)});
    }
  std::sort(all.begin(), all.end(),
            [](const Duel& a, const Duel& b) { return a.bytes_per_s < b.bytes_per_s; });
  for (const Duel& duel : disk)
    if (all.empty() || duel.bytes_per_s > all.back().bytes_per_s) all.push_back(duel);
  return all;
}

/// Where the ratio first rises to 1, along straight lines in logarithms.
std::optional<double> crossing(const std::vector<Duel>& all) {
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double before = std::log(all[i - 1].ratio), after = std::log(all[i].ratio);
    if (before >= 0) return std::nullopt;
    if (after < 0) continue;
    const double part = before / (before - after);
    const double low = std::log(all[i - 1].bytes_per_s), high = std::log(all[i].bytes_per_s);
    return std::exp(low + part * (high - low));
  }
  return std::nullopt;
}

const Json* find(const Json& rows, const std::string& contents, const std::string& name, int rate) {
  for (const Json& row : rows)
    if (is(row, contents, name) && row.at("MBps") == rate) return &row;
  return nullptr;
}

}  // namespace

Json break_even(const Json& rows) {
  Json points = Json::array();
  for (const std::string& contents : contents_in(rows))
    for (const auto& [direction, time] :
         {std::pair("checkpoint", "global_ms"), std::pair("restart", "restore_ms")}) {
      const auto all = duels(rows, contents, time);
      if (all.empty()) continue;
      Json point = {{"contents", contents}, {"direction", direction}};
      if (const auto rate = crossing(all))
        point["MBps"] = *rate / kMega;
      else
        point["wins"] = all.front().ratio < 1 ? "aware" : "none";
      points.push_back(point);
    }
  return points;
}

void print_legend(double name_ms) {
  fmt::print(
      "The directory of the global tier is slowed down: all ranks together read and write at so\n"
      "many MB/s, and each operation on names (create, open, list, rename, ...) takes {:g} ms, "
      "one\n"
      "after another; `the disk's` is not slowed. Cases of table 5 of the paper: none "
      "(NoC+NoAgg),\n"
      "compress (C+NoAgg), aggregate (NoC+Agg), agnostic (Agnostic+Agg), aware (Aware+Agg).\n"
      "Milliseconds, medians: blocked in checkpoint(), until the version is on the tier, open() "
      "and\n"
      "restore() after the local tier was lost. Names: operations on them, until the version is "
      "on\n"
      "the tier, and of restore().\n",
      name_ms);
}

void print_rows(const Json& rows) {
  bool first = true;
  for (const Json& row : rows) {
    if (first)
      fmt::print(
          "\n{}: {:.1f} MiB of {} ranks\n{:10} {:9} {:>5} {:>8} {:>8} {:>8} {:>6} {:>8} {:>8} "
          "{:>8} {:>6}\n",
          row.at("contents").get<std::string>(), number(row, "protected_bytes") / kMebi,
          row.at("ranks").get<int>(), "directory", "case", "files", "MiB", "blocked", "on tier",
          "names", "open", "restore", "MiB read", "names");
    first = false;
    fmt::print(
        "{:10} {:9} {:5.0f} {:8.1f} {:8.1f} {:8.1f} {:6.0f} {:8.1f} {:8.1f} {:8.1f} {:6.0f}\n",
        pace_of(row), row.at("case").get<std::string>(), number(row, "files"),
        number(row, "file_bytes") / kMebi, number(row, "blocking_ms"), number(row, "global_ms"),
        number(row, "write_names"), number(row, "open_ms"), number(row, "restore_ms"),
        number(row, "read_bytes") / kMebi, number(row, "read_names"));
  }
  std::fflush(stdout);
}

void print_break_even(const Json& points) {
  fmt::print("\nbandwidth below which aware beats none, interpolated:\n");
  for (const Json& point : points) {
    const std::string what = fmt::format("{:8} {:10}", point.at("contents").get<std::string>(),
                                         point.at("direction").get<std::string>());
    if (point.contains("MBps"))
      fmt::print("{} {:.0f} MB/s\n", what, number(point, "MBps"));
    else if (point.at("wins") == "aware")
      fmt::print("{} any that was measured\n", what);
    else
      fmt::print("{} less than was measured, if any\n", what);
  }
  fmt::print("\n");
}

std::vector<Target> targets_of(const Json& rows) {
  std::vector<Target> targets;
  for (const std::string& contents : contents_in(rows)) {
    const Json* const none = find(rows, contents, "none", 200);
    const Json* const agnostic = find(rows, contents, "agnostic", 200);
    const Json* const aware = find(rows, contents, "aware", 200);
    if (none == nullptr || agnostic == nullptr || aware == nullptr) continue;
    const auto add = [&](const char* name, const Json& other, const char* figure, double bound) {
      targets.push_back({fmt::format("{}-{}", contents, name),
                         number(*aware, figure) / number(other, figure), bound});
    };
    add("aware-vs-none-checkpoint-200MBps", *none, "global_ms", 1);
    add("aware-vs-none-restart-200MBps", *none, "restore_ms", 1);
    add("aware-vs-agnostic-checkpoint-200MBps", *agnostic, "global_ms", 1);
    add("aware-vs-none-files", *none, "files", 1 / number(*none, "ranks"));
    targets.push_back({fmt::format("{}-aware-read-vs-written-bytes", contents),
                       number(*aware, "read_bytes") / number(*aware, "file_bytes"), kReadBound});
  }
  return targets;
}

}  // namespace belay::bench
