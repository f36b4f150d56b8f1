// SPDX-License-Identifier: Apache-2.0
#include "applications/findings.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <cmath>
#include <map>

namespace belay::bench {
namespace {

/// One version after another, saved in one way.
struct Series {
  double protected_bytes = 0;
  double changed_bytes = 0;
  double written_bytes = 0;
  std::vector<double> blocking_ms, durable_ms, full_durable_ms, plain_write_ms;
  std::vector<double> durable_per_full, durable_per_plain_write;
};

void add(Series& series, const Json& version, const Json& way) {
  const double durable = way.at("durable_ms"), full = version.at("full").at("durable_ms");
  const double plain_write = version.at("plain_write_ms");
  series.protected_bytes += version.at("protected_bytes").get<double>();
  series.changed_bytes += way.at("changed_bytes").get<double>();
  series.written_bytes += way.at("written_bytes").get<double>();
  series.blocking_ms.push_back(way.at("blocking_ms"));
  series.durable_ms.push_back(durable);
  series.full_durable_ms.push_back(full);
  series.plain_write_ms.push_back(plain_write);
  series.durable_per_full.push_back(durable / full);
  series.durable_per_plain_write.push_back(durable / plain_write);
}

Json to_row(const std::string& application, const std::string& layout, int block,
            const Series& series) {
  const auto versions = static_cast<double>(series.durable_ms.size());
  return {{"application", application},
          {"layout", layout},
          {"block", block},
          {"versions", versions},
          {"protected_bytes", series.protected_bytes / versions},
          {"changed_share", series.changed_bytes / series.protected_bytes},
          {"written_share", series.written_bytes / series.protected_bytes},
          {"blocking_ms", median(series.blocking_ms)},
          {"durable_ms", median(series.durable_ms)},
          {"full_durable_ms", median(series.full_durable_ms)},
          {"plain_write_ms", median(series.plain_write_ms)},
          {"durable_per_full", median(series.durable_per_full)},
          {"durable_per_plain_write", median(series.durable_per_plain_write)}};
}

/// The paper's equation 5: what a version costs against a full one if this share of it is written,
/// with the time of hashing a block against that of writing it as measured there (equation 9).
double paper_model(double share) {
  constexpr double kHashPerWrite = 0.029;
  return std::round(1000 * (kHashPerWrite + share * (1 + kHashPerWrite))) / 1000;
}

}  // namespace

Json summarize(const Json& applications) {
  Json rows = Json::array();
  for (const Json& application : applications) {
    std::map<std::pair<std::string, int>, Series> ways;
    const Json& versions = application.at("versions");
    for (std::size_t i = 1; i < versions.size(); ++i)
      for (const Json& way : versions[i].at("ways"))
        add(ways[{way.at("layout"), way.at("block")}], versions[i], way);
    for (const auto& [key, series] : ways)
      rows.push_back(to_row(application.at("application"), key.first, key.second, series));
  }
  return rows;
}

const Json& row_of(const Json& summary, const std::string& application, const std::string& layout,
                   int block) {
  for (const Json& row : summary)
    if (row.at("application") == application && row.at("layout") == layout &&
        row.at("block") == block)
      return row;
  die(fmt::format("nothing was found about {}, {}, {} B", application, layout, block));
}

std::vector<Target> targets_of(const Json& findings) {
  std::vector<Target> targets;
  for (const Json& application : findings.at("applications")) {
    const std::string name = application.at("application");
    const Json& row = row_of(findings.at("summary"), name, "arrays", 16384);
    targets.push_back({name + "-written-per-full", row.at("written_share"), 1});
    targets.push_back({name + "-durable-per-full", row.at("durable_per_full"), 1});
    targets.push_back({name + "-durable-per-plain-write", row.at("durable_per_plain_write"), 1});
    targets.push_back({name + "-durable-per-full-as-the-papers-model", row.at("durable_per_full"),
                       paper_model(row.at("written_share"))});
  }
  return targets;
}

}  // namespace belay::bench
