// SPDX-License-Identifier: Apache-2.0
// bench_interference: how much longer heat2d and cg take if a version is due every few seconds. One
// rank, and beside it a thread or a head that writes: on two cores one is free for it.
#include "interference/runs.hpp"
#include "measure/bench_main.hpp"
#include "measure/cost.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/report.hpp"

#include <algorithm>
#include <cmath>

namespace belay::bench {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr double kBound = 0.05;      ///< of slow-down, where a core is free
constexpr double kFewSeconds = 2.0;  ///< an interval that must be bearable

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("interference") {}

  double seconds = 8;
  int repetitions = 3;
};

struct Job {
  Application application;
  long pace_steps;  ///< to find out how long a step takes
  long most_steps;  ///< more would come to an end by themselves
};

std::vector<Job> jobs(bool quick) {
  if (quick)
    return {{{"heat2d", {"--rows", "1024", "--cols", "2048"}}, 40, 100000},
            {{"cg", {"--size", "100"}}, 8, 60}};
  return {{{"heat2d", {"--rows", "4096", "--cols", "4096"}}, 25, 100000},
          {{"cg", {"--size", "128"}}, 6, 80}};
}

/// The first is what the others are compared with.
std::vector<Way> ways(bool quick) {
  if (quick) return {{"thread", 0}, {"inline", 1}, {"thread", 1}, {"head", 1}};
  return {{"thread", 0},           {"inline", kFewSeconds}, {"thread", 4},
          {"thread", kFewSeconds}, {"thread", 1},           {"head", kFewSeconds}};
}

/// One way of an application, each time that it ran.
struct Series {
  Way way;
  std::string problem;  ///< empty: it works
  std::vector<double> step_s, slowdown;
  std::uint64_t versions = 0;
};

Json to_row(const Application& application, const Series& series, long steps) {
  Json row = {{"application", application.name},
              {"background", series.way.background},
              {"interval_s", series.way.interval_s},
              {"way", series.way.name()},
              {"steps", steps},
              {"supported", series.problem.empty()},
              {"problem", series.problem}};
  if (series.step_s.empty()) return row;
  const double slowdown = median(series.slowdown), seconds = median(series.step_s);
  row["seconds"] = seconds;
  row["slowdown"] = slowdown;
  row["versions"] = series.versions;
  const auto more = static_cast<double>(series.versions) - 1;
  row["per_version_ms"] = more > 0 ? 1e3 * seconds * slowdown / (1 + slowdown) / more : 0;
  return row;
}

void print_row(const Json& row) {
  fmt::print("{:8} {:22}", row.at("application").get<std::string>(),
             row.at("way").get<std::string>());
  if (!row.contains("seconds")) return fmt::print(" {}\n", row.at("problem").get<std::string>());
  fmt::print(" {:9.2f} {:9} {:10.1f} % {:12.1f}\n", row.at("seconds").get<double>(),
             row.at("versions").get<std::uint64_t>(), 100 * row.at("slowdown").get<double>(),
             row.at("per_version_ms").get<double>());
  std::fflush(stdout);
}

/// All ways of one application, in turn.
std::optional<Json> measure(const Job& job, const Arguments& arguments) {
  const auto pace = find_pace(job.application, job.pace_steps, arguments.directory);
  if (!pace) return std::nullopt;
  const double wanted = arguments.quick ? 2.5 : arguments.seconds;
  const long steps = std::clamp(std::lround(wanted / pace->step_s), 1L, job.most_steps);
  std::vector<Series> all;
  for (const Way& way : ways(arguments.quick)) {
    const std::string problem = why_unsupported(way, arguments.directory);
    all.push_back({way, problem.empty() ? "" : "unsupported: " + problem, {}, {}});
  }
  for (int turn = 0; turn < (arguments.quick ? 1 : arguments.repetitions); ++turn) {
    double alone_s = 0;
    for (Series& series : all) {
      if (!series.problem.empty()) continue;
      const auto cost = run(job.application, series.way, steps, arguments.directory);
      if (!cost) {
        series.problem = "failed";
        continue;
      }
      const double seconds = std::max(cost->seconds - pace->rest_s, 1e-3);
      if (&series == &all.front()) alone_s = seconds;
      if (alone_s == 0) return std::nullopt;
      series.step_s.push_back(seconds);
      series.slowdown.push_back(seconds / alone_s - 1);
      series.versions = cost->versions;
    }
  }
  Json rows = Json::array();
  for (const Series& series : all) rows.push_back(to_row(job.application, series, steps));
  return rows;
}

std::vector<Target> targets_of(const Json& rows) {
  std::vector<Target> targets;
  for (const Json& row : rows) {
    const auto interval_s = row.at("interval_s").get<double>();
    const auto background = row.at("background").get<std::string>();
    if (row.contains("slowdown") && interval_s >= kFewSeconds && background != "inline")
      targets.push_back(
          {fmt::format("{}-{}-{:g}s-slowdown", row.at("application").get<std::string>(), background,
                       interval_s),
           row.at("slowdown"), kBound});
  }
  return targets;
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());
  const Json machine = describe_machine(arguments.directory);
  fmt::print("1 rank, and 1 thread or head that writes, on {} cores\n\n",
             machine.at("cores").get<int>());
  fmt::print("{:8} {:22} {:>9} {:>9} {:>12} {:>12}\n", "", "versions", "s", "taken", "slower",
             "ms a version");
  Json rows = Json::array();
  int failures = 0;
  for (const Job& job : jobs(arguments.quick)) {
    const auto found = measure(job, arguments);
    if (!found) {
      fmt::print("{}: failed\n", job.application.name);
      ++failures;
      continue;
    }
    for (const Json& row : *found) {
      print_row(row);
      rows.push_back(row);
      failures += row.at("problem") == "failed" ? 1 : 0;
    }
  }
  fmt::print(
      "\nseconds of all steps, medians; slower than with a version of the first step only, which\n"
      "the examples always take, turn by turn.\n\n");
  const std::vector<Target> targets = targets_of(rows);
  write_json(arguments.json, {{"machine", machine},
                              {"quick", arguments.quick},
                              {"rows", rows},
                              {"targets", to_json(targets)}});
  print_targets(targets);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace belay::bench

int main(int argc, char** argv) {
  using namespace belay::bench;
  Arguments arguments;
  CLI::App app("How much longer applications take because of their versions.");
  add_common_options(app, arguments);
  app.add_option("--seconds", arguments.seconds, "what a run takes, without versions")
      ->check(CLI::Range(1.0, 600.0));
  app.add_option("--repetitions", arguments.repetitions, "runs of each kind")
      ->check(CLI::Range(1, 1000));
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
