// SPDX-License-Identifier: Apache-2.0
#include "compress/findings.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace belay::bench {
namespace {

constexpr double kSlowChain = 100e6;            ///< bytes/s
constexpr std::uint64_t kLargeField = 1 << 20;  ///< bytes of a variable of all ranks

double number(const Json& row, const char* key) { return row.at(key).get<double>(); }

/// `auto` against the smallest scheme of a chain, over all sets; the least of each.
struct Comparison {
  double ratio = 1e9, speed_where_slow = 1e9, speed_elsewhere = 1e9;
};

Comparison compare(const Json& rows, const std::string& chain) {
  Comparison least;
  for (const Json& row : rows) {
    if (row.at("scheme") != "auto") continue;
    const Json& best = best_scheme(rows, row, chain);
    least.ratio = std::min(least.ratio, number(row, "ratio") / number(best, "ratio"));
    const bool slow = number(best, "bytes") / number(best, "pack_s") < kSlowChain;
    double& speed = slow ? least.speed_where_slow : least.speed_elsewhere;
    speed = std::min(speed, number(best, "pack_s") / number(row, "pack_s"));
  }
  return least;
}

/// Over a whole run, the application where it is worst.
double time_per_oracle(const Json& rows) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, double> best, chosen;
  for (const Json& row : rows) {
    const Key key = {row.at("application"), row.at("when"), row.at("variable")};
    if (row.at("codec") == "auto") chosen[key] = total_s(row);
    if (!is_of_belay(row)) continue;
    const auto [place, is_new] = best.emplace(key, total_s(row));
    if (!is_new) place->second = std::min(place->second, total_s(row));
  }
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& [key, seconds] : chosen) {
    sums[std::get<0>(key)].first += seconds;
    sums[std::get<0>(key)].second += best.at(key);
  }
  double worst = 0;
  for (const auto& [application, sum] : sums) worst = std::max(worst, sum.first / sum.second);
  return worst;
}

double float_megabytes_per_s(const Json& rows, const char* seconds) {
  double bytes = 0, sum = 0;
  for (const Json& row : rows)
    if (row.at("codec") == "auto" && row.at("type") == "float" &&
        number(row, "bytes") >= kLargeField) {
      bytes += number(row, "bytes");
      sum += number(row, seconds);
    }
  return bytes / 1e6 / sum;
}

}  // namespace

std::vector<Target> targets_of(const Json& findings) {
  const Json& schemes = findings.at("schemes");
  const Json& codecs = findings.at("codecs");
  std::vector<Target> targets;
  for (const std::string chain : {"paper", "fpzip"}) {
    const Comparison least = compare(schemes, chain);
    const auto add = [&](const char* what, double value, double bound) {
      if (value < 1e9)
        targets.push_back({fmt::format("auto-{}-per-{}", what, chain), value, bound, true});
    };
    add("ratio", least.ratio, 1);
    add("speed-where-slow", least.speed_where_slow, 5);
    add("speed-elsewhere", least.speed_elsewhere, 1.5);
  }
  targets.push_back({"auto-time-per-oracle", time_per_oracle(codecs), 1.03});
  targets.push_back(
      {"auto-float-compress-MBs", float_megabytes_per_s(codecs, "encode_s"), 800, true});
  targets.push_back(
      {"auto-float-decompress-MBs", float_megabytes_per_s(codecs, "decode_s"), 2000, true});
  return targets;
}

}  // namespace belay::bench
