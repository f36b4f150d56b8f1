// SPDX-License-Identifier: Apache-2.0
#include "differential/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace belay::bench {
namespace {

double ratio(const Json& row, const char* value, const char* unit) {
  return row.at(value).get<double>() / row.at(unit).get<double>();
}

/// Collects figures by name; of several of one name the worst counts.
class Figures {
 public:
  void add(const std::string& name, double value, double bound) {
    const auto found = std::find_if(targets_.begin(), targets_.end(),
                                    [&](const Target& target) { return target.name == name; });
    if (found == targets_.end())
      targets_.push_back({name, value, bound});
    else
      found->value = std::max(found->value, value);
  }
  std::vector<Target> take() { return std::move(targets_); }

 private:
  std::vector<Target> targets_;
};

void judge_row(Figures& figures, const Json& row) {
  const std::string scene = row.at("case");
  const double dirty = row.at("dirty");
  if (dirty == 0 && scene.starts_with("1x"))
    figures.add(fmt::format("unchanged-{}-blocking-per-scan", scene),
                ratio(row, "blocking_ms", "scan_ms"), 1.3);
  if (dirty == 0 && !scene.starts_with("1x"))
    figures.add(fmt::format("unchanged-{}-cpu-per-scan-cpu", scene),
                ratio(row, "cpu_ms", "scan_cpu_ms"), 1.5);
  if (dirty == 3 && row.at("pattern") == "scattered")
    figures.add(fmt::format("dirty-3-{}-durable-per-plain-write", scene),
                ratio(row, "durable_ms", "plain_write_ms"), 0.15);
  if (dirty == 100)
    figures.add(fmt::format("dirty-100-{}-durable-per-plain-write", scene),
                ratio(row, "durable_ms", "plain_write_ms"), 0.6);
  figures.add(fmt::format("restore-{}-per-direct-read", scene),
              ratio(row, "restore_ms", "direct_read_ms"), 1.3);
}

void judge_series(Figures& figures, const Json& row) {
  const double dirty = row.at("dirty");
  figures.add(fmt::format("series-{:g}-written-per-dirty", dirty), row.at("written_per_dirty"),
              dirty < 1 ? 3 : 1.5);
  if (dirty != 3) return;
  figures.add("series-3-median-durable-per-plain-write", ratio(row, "durable_ms", "plain_write_ms"),
              0.2);
  figures.add("series-3-worst-durable-per-plain-write",
              ratio(row, "worst_durable_ms", "plain_write_ms"), 0.35);
}

/// How much more the dearest of several rows costs than the cheapest.
void judge_evenness(Figures& figures, const std::string& name, const Json& rows, const char* key) {
  double least = std::numeric_limits<double>::max(), most = 0;
  for (const Json& row : rows) {
    least = std::min(least, row.at(key).get<double>());
    most = std::max(most, row.at(key).get<double>());
  }
  if (rows.size() > 1) figures.add(name, most / least, 1.2);
}

}  // namespace

std::vector<Target> targets_of(const Json& findings) {
  const Json none = Json::array();
  Figures figures;
  for (const Json& row : findings.value("rows", none)) judge_row(figures, row);
  for (const Json& row : findings.value("series", none)) judge_series(figures, row);
  if (findings.contains("memory"))
    figures.add("memory-beyond-staging-bytes-per-block",
                findings.at("memory").at("growth_per_block"), 40);
  for (const auto* part : {"sizes", "regions"}) {
    judge_evenness(figures, fmt::format("cost-by-{}-blocking-spread", part),
                   findings.value(part, none), "blocking_ms_per_gib");
    judge_evenness(figures, fmt::format("cost-by-{}-durable-spread", part),
                   findings.value(part, none), "durable_ms_per_gib");
  }
  for (const Json& row : findings.value("sweep", none))
    if (row.at("block") == 512)
      figures.add(
          fmt::format("sweep-512-{}-durable-per-plain-write", row.at("pattern").get<std::string>()),
          ratio(row, "durable_ms", "plain_write_ms"), 1);
  return figures.take();
}

}  // namespace belay::bench
