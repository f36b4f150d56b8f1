// SPDX-License-Identifier: Apache-2.0
#include "findings.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

namespace belay::bench {
namespace {

constexpr std::array<const char*, 4> kModes = {"none", "local", "collective",
                                               "collective-unshuffled"};

double number(const Json& row, const char* key) { return row.at(key).get<double>(); }
double mib(const Json& row, const char* key) { return number(row, key) / (1 << 20); }

/// Of one trial; nullptr if there was none.
const Json* find_row(const Json& rows, const std::string& contents, int block, int copies,
                     const std::string& mode) {
  for (const Json& row : rows)
    if (row.at("contents") == contents && row.at("block") == block && row.at("copies") == copies &&
        row.at("mode") == mode)
      return &row;
  return nullptr;
}

void for_each_contents(const Json& rows,
                       const std::function<void(const std::string& contents, int block)>& visit) {
  for (const auto& contents : values_of<std::string>(rows, "contents"))
    for (const int block : values_of<int>(rows, "block"))
      if (std::any_of(rows.begin(), rows.end(), [&](const Json& row) {
            return row.at("contents") == contents && row.at("block") == block;
          }))
        visit(contents, block);
}

/// As the paper's figure 3(a). With one copy nothing is kept twice, so what is stored is distinct.
void print_unique(const Json& rows) {
  fmt::print("\nunique content (figure 3a): MiB, and share of all\n");
  fmt::print("{:10} {:>7} {:>9} {:>16} {:>16}\n", "", "block", "all", "local", "collective");
  for_each_contents(rows, [&](const std::string& contents, int block) {
    const Json* row = find_row(rows, contents, block, 1, "collective");
    if (!row) return;
    const double all = mib(*row, "protected_bytes");
    const double local = mib(*row, "locally_distinct_bytes"), own = mib(*row, "own_stored_bytes");
    fmt::print("{:10} {:5} B {:9.1f} {:9.1f} {:4.0f} % {:9.1f} {:4.0f} %\n", contents, block, all,
               local, 100 * local / all, own, 100 * own / all);
  });
  fmt::print("paper, 4096 B, 408 processes: HPCCG 33 % local, 6 % collective; CM1 30 %, 5 %\n");
}

using Cell = std::function<std::string(const Json& row)>;

/// A line for each mode, a column for each number of copies.
void print_by_copies(const Json& rows, const std::string& contents, int block, const char* title,
                     const Cell& cell) {
  const std::vector<int> copies = values_of<int>(rows, "copies");
  fmt::print("  {:28}", title);
  for (const int k : copies) fmt::print(" {:>15}", fmt::format("K = {}", k));
  fmt::print("\n");
  for (const char* mode : kModes) {
    std::string line;
    bool any = false;
    for (const int k : copies) {
      const Json* row = find_row(rows, contents, block, k, mode);
      any = any || row;
      line += fmt::format(" {:>15}", row ? cell(*row) : "");
    }
    if (any) fmt::print("  {:28}{}\n", mode, line);
  }
}

/// As the paper's figures 4 and 5.
void print_by_mode(const Json& rows) {
  for_each_contents(rows, [&](const std::string& contents, int block) {
    fmt::print("\n{}, blocks of {} B (figures 4 and 5)\n", contents, block);
    const auto print = [&](const char* title, const Cell& cell) {
      print_by_copies(rows, contents, block, title, cell);
    };
    print("a) until durable, ms (CPU ms)", [](const Json& row) {
      return fmt::format("{:.0f} ({:.0f})", number(row, "durable_ms"), number(row, "cpu_ms"));
    });
    print("   stored on all nodes, MiB",
          [](const Json& row) { return fmt::format("{:.1f}", mib(row, "stored_bytes")); });
    print("b) sent: average, most, MiB", [](const Json& row) {
      return fmt::format("{:.2f}, {:.2f}", mib(row, "sent_bytes") / number(row, "ranks"),
                         mib(row, "sent_most_bytes"));
    });
    print("c) received: most, MiB",
          [](const Json& row) { return fmt::format("{:.2f}", mib(row, "received_most_bytes")); });
  });
  fmt::print(
      "\npaper, 408 processes, K = 6: HPCCG: collective 2 x as fast as local, 6 x as none, sends\n"
      "5 x less than local on average, receives 8 % less at most when shuffled; CM1: 2.3 x, 8 x,\n"
      "and almost 30 % less when shuffled. From K = 1 to 6 none takes 3 x and 5 x as long.\n");
}

double seconds_of(const Json& runs, const std::string& application, int ranks,
                  const std::string& mode) {
  for (const Json& run : runs)
    if (run.at("application") == application && run.at("ranks") == ranks && run.at("mode") == mode)
      return number(run, "seconds");
  die(fmt::format("{} did not run on {} ranks with {}", application, ranks, mode));
}

/// As the paper's table I.
void print_completion(const Json& runs) {
  fmt::print("\ntime to completion, K = 3 (table I), s: versions of the first step and half way\n");
  fmt::print("{:10} {:>9} {:>9} {:>9} {:>11} {:>12}\n", "", "processes", "none", "local",
             "collective", "first only");
  for (const auto& application : values_of<std::string>(runs, "application"))
    for (const int ranks : values_of<int>(runs, "ranks"))
      fmt::print("{:10} {:9} {:9.2f} {:9.2f} {:11.2f} {:12.2f}\n", application, ranks,
                 seconds_of(runs, application, ranks, "none"),
                 seconds_of(runs, application, ranks, "local"),
                 seconds_of(runs, application, ranks, "collective"),
                 seconds_of(runs, application, ranks, "first only"));
  struct Line {
    const char* application;
    int processes, none, local, collective, baseline;
  };
  constexpr std::array<Line, 8> kPaper = {{{"HPCCG", 1, 148, 113, 113, 82},
                                           {"HPCCG", 64, 921, 390, 227, 152},
                                           {"HPCCG", 196, 1004, 447, 278, 186},
                                           {"HPCCG", 408, 1188, 547, 375, 279},
                                           {"CM1", 12, 1401, 524, 242, 178},
                                           {"CM1", 120, 1522, 734, 367, 259},
                                           {"CM1", 264, 1647, 808, 505, 366},
                                           {"CM1", 408, 1687, 828, 558, 382}}};
  fmt::print("paper (the last column is without any checkpoint):\n");
  for (const Line& line : kPaper)
    fmt::print("{:10} {:9} {:9} {:9} {:11} {:12}\n", line.application, line.processes, line.none,
               line.local, line.collective, line.baseline);
}

constexpr double kClearlyLess = 0.8;  ///< than local, where ranks share data
constexpr double kAsUnique = 1.01;    ///< no more than what they share can be left out

/// Unique content of all ranks together, of the sum of what is unique on each.
double unique_share(const Json& rows, const std::string& contents, int block) {
  const Json* local = find_row(rows, contents, block, 1, "local");
  const Json* collective = find_row(rows, contents, block, 1, "collective");
  if (!local || !collective) return 0;
  return number(*collective, "stored_bytes") / number(*local, "stored_bytes");
}

}  // namespace

void print_tables(const Json& findings) {
  const Json& rows = findings.at("rows");
  print_unique(rows);
  print_by_mode(rows);
  if (!findings.at("runs").empty()) print_completion(findings.at("runs"));
  fmt::print("\n");
}

std::vector<Target> targets_of(const Json& findings) {
  const Json& rows = findings.at("rows");
  std::vector<Target> targets;
  for_each_contents(rows, [&](const std::string& contents, int block) {
    const std::string name = fmt::format("{}-{}", contents, block);
    for (const int copies : {2, 3}) {
      const Json* none = find_row(rows, contents, block, copies, "none");
      const Json* local = find_row(rows, contents, block, copies, "local");
      const Json* collective = find_row(rows, contents, block, copies, "collective");
      if (contents == "distinct" && none && collective)
        targets.push_back({fmt::format("{}-k{}-collective-time-per-none", name, copies),
                           number(*collective, "durable_ms") / number(*none, "durable_ms"), 1.1});
      if (contents == "distinct" || copies != 3 || !local || !collective) continue;
      for (const char* key : {"stored", "sent"}) {
        const std::string bytes = fmt::format("{}_bytes", key);
        targets.push_back(
            {fmt::format("{}-k3-collective-{}-per-local", name, key),
             number(*collective, bytes.c_str()) / number(*local, bytes.c_str()),
             std::max(kClearlyLess, kAsUnique * unique_share(rows, contents, block))});
      }
    }
  });
  return targets;
}

}  // namespace belay::bench
