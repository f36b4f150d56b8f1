// SPDX-License-Identifier: Apache-2.0
#include "compress/findings.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

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

double write_s(const Json& row) { return number(row, "encoded_bytes") / kBandwidth; }

/// Seconds to encode and to write, in one turn.
double turn_s(const Json& row, std::size_t turn) {
  return row.at("encode_turns_s").at(turn).get<double>() + write_s(row);
}

/// The median of all turns but one.
double other_turns_s(const Json& row, std::size_t turn) {
  auto turns = row.at("encode_turns_s").get<std::vector<double>>();
  if (turns.size() > 1) turns.erase(turns.begin() + static_cast<std::ptrdiff_t>(turn));
  return median(turns) + write_s(row);
}

/// What a variable took in a turn with the codec that is the best in the others: to know the best
/// is not to know by how much chance helps it.
double oracle_s(const std::vector<const Json*>& codecs, std::size_t turn) {
  return turn_s(**std::min_element(codecs.begin(), codecs.end(),
                                   [&](const Json* a, const Json* b) {
                                     return other_turns_s(*a, turn) < other_turns_s(*b, turn);
                                   }),
                turn);
}

/// Over a whole run, by application, and of all of them, which has no name.
std::map<std::string, double> times_per_oracle(const Json& rows) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, std::vector<const Json*>> codecs;
  std::map<Key, const Json*> chosen;
  for (const Json& row : rows) {
    const Key key = {row.at("application"), row.at("when"), row.at("variable")};
    if (row.at("codec") == "auto") chosen[key] = &row;
    if (is_of_belay(row)) codecs[key].push_back(&row);
  }
  std::map<std::string, std::pair<double, double>> sums;
  for (const auto& [key, row] : chosen) {
    std::vector<double> taken, oracle;
    for (std::size_t turn = 0; turn < row->at("encode_turns_s").size(); ++turn) {
      taken.push_back(turn_s(*row, turn));
      oracle.push_back(oracle_s(codecs.at(key), turn));
    }
    for (const std::string& application : {std::get<0>(key), std::string()}) {
      sums[application].first += median(taken);
      sums[application].second += median(oracle);
    }
  }
  std::map<std::string, double> times;
  for (const auto& [application, sum] : sums) times[application] = sum.first / sum.second;
  return times;
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
  for (const auto& [application, time] : times_per_oracle(codecs))
    targets.push_back(
        {fmt::format("auto-time-per-oracle{}{}", application.empty() ? "" : "-", application), time,
         1.03});
  targets.push_back(
      {"auto-float-compress-MBs", float_megabytes_per_s(codecs, "encode_s"), 800, true});
  targets.push_back(
      {"auto-float-decompress-MBs", float_megabytes_per_s(codecs, "decode_s"), 2000, true});
  return targets;
}

}  // namespace belay::bench
