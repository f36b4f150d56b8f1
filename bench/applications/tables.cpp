// SPDX-License-Identifier: Apache-2.0
#include "applications/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace belay::bench {
namespace {

double number(const Json& row, const char* key) { return row.at(key).get<double>(); }
std::string text(const Json& row, const char* key) { return row.at(key).get<std::string>(); }
double percent(const Json& row, const char* key) { return 100 * number(row, key); }

void print_runs(const Json& applications) {
  fmt::print("\nthe runs themselves; checkpoint() is all versions together\n");
  fmt::print("{:8} {:>5} {:>8} {:>10} {:>8} {:>8} {:>12}\n", "", "ranks", "versions", "protected",
             "steps", "run", "checkpoint()");
  for (const Json& application : applications) {
    double blocking_ms = 0;
    for (const Json& version : application.at("versions"))
      blocking_ms += number(version.at("in_the_run"), "blocking_ms");
    const Json& last = application.at("versions").back();
    fmt::print("{:8} {:5} {:8} {:6.1f} MiB {:8} {:6.1f} s {:9.2f} s\n",
               text(application, "application"), application.at("ranks").get<int>(),
               application.at("versions").size(), number(last, "protected_bytes") / (1 << 20),
               last.at("step").get<long>(), number(application, "run_s"), blocking_ms / 1000);
  }
}

void print_regions(const Json& applications) {
  fmt::print("\nwhat changes from version to version, blocks of 16 KiB\n");
  for (const Json& application : applications) {
    fmt::print("{:8}", text(application, "application"));
    for (const Json& region : application.at("regions"))
      if (number(region, "bytes") >= 4096)
        fmt::print("  {} {:.1f} MiB {:.0f}%", text(region, "name"),
                   number(region, "bytes") / (1 << 20), percent(region, "changed_share"));
    fmt::print("\n");
  }
}

void print_summary(const Json& summary) {
  fmt::print(
      "\nafter the first version: shares of all protected bytes; medians of times, and of durable "
      "times against full versions and plain writes\n");
  fmt::print("{:8} {:10} {:>9} {:>8} {:>8} {:>11} {:>11} {:>8} {:>9} | {:>11} {:>11}\n", "",
             "layout", "block", "changed", "written", "blocking", "durable", "to full", "to plain",
             "full", "plain write");
  for (const Json& row : summary)
    fmt::print(
        "{:8} {:10} {:7} B {:7.1f}% {:7.1f}% {:8.1f} ms {:8.1f} ms {:+7.0f}% {:+8.0f}% | {:8.1f} "
        "ms {:8.1f} ms\n",
        text(row, "application"), text(row, "layout"), row.at("block").get<int>(),
        percent(row, "changed_share"), percent(row, "written_share"), number(row, "blocking_ms"),
        number(row, "durable_ms"), percent(row, "durable_per_full") - 100,
        percent(row, "durable_per_plain_write") - 100, number(row, "full_durable_ms"),
        number(row, "plain_write_ms"));
}

void print_shares(const Json& application) {
  fmt::print("\n{}: changed since the version before, by rank\n{:>8}",
             text(application, "application"), "step");
  for (int rank = 0; rank < application.at("ranks").get<int>(); ++rank) fmt::print(" {:>5}", rank);
  fmt::print("\n");
  const Json& versions = application.at("versions");
  for (std::size_t i = 1; i < versions.size(); ++i) {
    fmt::print("{:8}", versions[i].at("step").get<long>());
    for (const Json& share : versions[i].at("changed_share"))
      fmt::print(" {:4.0f}%", 100 * share.get<double>());
    fmt::print("\n");
  }
}

/// The size up to which runs hold half of the changed bytes.
double middle_run(const Json& rows) {
  double all = 0, so_far = 0;
  for (const Json& row : rows) all += number(row, "bytes");
  for (const Json& row : rows)
    if ((so_far += number(row, "bytes")) >= all / 2) return number(row, "up_to_bytes");
  return 0;
}

void print_dirty_runs(const Json& applications) {
  fmt::print("\nhalf of the changed bytes lie in runs of up to (16 KiB blocks)\n");
  for (const Json& application : applications)
    fmt::print("{:8} {:8.0f} KiB as arrays, {:8.0f} KiB serialized\n",
               text(application, "application"),
               middle_run(application.at("runs").at("arrays")) / 1024,
               middle_run(application.at("runs").at("serialized")) / 1024);
}

}  // namespace

void print_tables(const Json& findings) {
  const Json& applications = findings.at("applications");
  print_runs(applications);
  print_regions(applications);
  for (const Json& application : applications) print_shares(application);
  print_dirty_runs(applications);
  print_summary(findings.at("summary"));
  fmt::print("\n");
}

}  // namespace belay::bench
