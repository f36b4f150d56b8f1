// SPDX-License-Identifier: Apache-2.0
// bench_aggregate: time and bytes of versions on a global tier that is slow, without and with
// compression and aggregation, and of restarts from there.
#include "aggregate/findings.hpp"
#include "measure/bench_main.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/rank_job.hpp"

#include <algorithm>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr int kRanks = 16;
constexpr std::uint64_t kRoomBytes = std::uint64_t{2} << 30;  ///< for a local tier

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("aggregate") {}

  std::vector<int> rates;
  double name_ms = 1;
  int repetitions = 3;

  std::vector<int> all_rates() const {
    if (!rates.empty()) return rates;
    return quick ? std::vector{200, 1000, 0} : std::vector{50, 200, 1000, 0};
  }
  bool wants(const std::string& contents) const {
    return only.empty() || std::find(only.begin(), only.end(), contents) != only.end();
  }
};

struct Application {
  std::string name;
  std::vector<std::string> arguments;
  int steps;  ///< a version is taken after half of them
};

std::vector<Application> applications(bool quick) {
  if (quick) return {{"pic", {"--size", "64", "--particles", "8"}, 4}};
  return {{"hydro", {"--size", "96"}, 400}, {"pic", {"--size", "128", "--particles", "16"}, 4}};
}

struct Case {
  const char* name;
  const char* codec;
  int aggregate;
};
constexpr Case kCases[] = {{"none", "raw", 1},
                           {"compress", "auto", 1},
                           {"aggregate", "raw", kRanks},
                           {"agnostic", "zstd-long", kRanks},
                           {"aware", "auto", kRanks}};

Json trials_of(const Arguments& arguments) {
  Json trials = Json::array();
  for (const int rate : arguments.all_rates())
    for (const Case& each : kCases)
      trials.push_back({{"case", each.name},
                        {"codec", each.codec},
                        {"aggregate", each.aggregate},
                        {"MBps", rate}});
  return trials;
}

/// The local tier is in memory, so that it is the global one that is measured.
std::optional<Json> measure(const std::string& contents, const fs::path& store,
                            const Arguments& arguments) {
  const Workplace workplace(arguments.directory);
  const Workplace local(memory_backed(kRoomBytes, arguments.directory));
  const std::uint64_t mebibytes = arguments.quick ? 4 : 24;
  return run_on_ranks(kRanks, "bench_aggregate_ranks",
                      {{"contents", contents},
                       {"store", store.string()},
                       {"bytes", mebibytes << 20},
                       {"local", (local.path() / "local").string()},
                       {"global", (workplace.path() / "global").string()},
                       {"state", (local.path() / "state").string()},
                       {"name_ms", arguments.name_ms},
                       {"repetitions", arguments.quick ? 1 : arguments.repetitions},
                       {"trials", trials_of(arguments)}},
                      arguments.directory);
}

/// What an application saves in the middle of a run.
std::optional<Json> measure(const Application& application, const Arguments& arguments) {
  const Workplace workplace(arguments.directory);
  const fs::path store = workplace.path() / "store";
  std::vector<std::string> command = mpirun(kRanks, application.name);
  command.insert(command.end(), application.arguments.begin(), application.arguments.end());
  command.insert(command.end(), {"--steps", std::to_string(application.steps)});
  if (!run_program(command,
                   {"BELAY_STORE=" + store.string(),
                    fmt::format("BELAY_INTERVAL={} calls", application.steps / 2)},
                   workplace.path() / "output"))
    return std::nullopt;
  return measure(application.name, store, arguments);
}

class Findings {
 public:
  void add(const std::string& contents, const std::optional<Json>& found) {
    if (!found) {
      fmt::print("{}: failed\n", contents);
      ++failures_;
      return;
    }
    print_rows(*found);
    for (const Json& row : *found) rows_.push_back(row);
  }
  const Json& rows() const { return rows_; }
  int failures() const { return failures_; }

 private:
  Json rows_ = Json::array();
  int failures_ = 0;
};

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());
  print_legend(arguments.name_ms);
  std::fflush(stdout);
  Findings findings;
  if (arguments.wants("fields")) findings.add("fields", measure("fields", {}, arguments));
  for (const Application& application : applications(arguments.quick))
    if (arguments.wants(application.name))
      findings.add(application.name, measure(application, arguments));
  Json result = {{"machine", describe_machine(arguments.directory)},
                 {"quick", arguments.quick},
                 {"name_ms", arguments.name_ms},
                 {"rows", findings.rows()},
                 {"break_even", break_even(findings.rows())}};
  print_break_even(result.at("break_even"));
  const std::vector<Target> targets = targets_of(findings.rows());
  result["targets"] = to_json(targets);
  write_json(arguments.json, result);
  print_targets(targets);
  return findings.failures() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace belay::bench

int main(int argc, char** argv) {
  using namespace belay::bench;
  Arguments arguments;
  CLI::App app("Versions on a slow global tier: what compression and aggregation are worth.");
  add_common_options(app, arguments);
  app.add_option("--rates", arguments.rates,
                 "MB/s of the global tier, of all ranks in sum; 0: as fast as the disk")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--name-ms", arguments.name_ms, "what an operation on names takes there")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--repetitions", arguments.repetitions, "of each trial")
      ->check(CLI::Range(1, 1000));
  add_only_option(app, arguments, {"fields", "hydro", "pic"});
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
