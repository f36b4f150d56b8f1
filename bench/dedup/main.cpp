// SPDX-License-Identifier: Apache-2.0
// bench_dedup: bytes and time of versions with copies on other nodes, for each mode of dedup. Every
// rank plays a node. Contents are what the examples leave behind, a mix with known shares of equal
// blocks, and data without any.
#include "findings.hpp"
#include "measure/bench_main.hpp"
#include "measure/cost.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/rank_job.hpp"

#include <array>
#include <chrono>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr int kRanks = 16;
constexpr std::uint64_t kRoomBytes = std::uint64_t{4} << 30;  ///< for one store, with room to spare

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("dedup") {}
};

struct Application {
  std::string name;
  std::vector<std::string> arguments;
  int steps;        ///< of a whole run; a version is taken after half of them
  int saved_steps;  ///< of the run whose contents are looked at, likewise
};

std::vector<Application> applications(bool quick) {
  if (quick) return {{"cg", {"--size", "16"}, 20, 20}, {"hydro", {"--size", "40"}, 40, 80}};
  return {{"cg", {"--size", "32"}, 30, 30}, {"hydro", {"--size", "96"}, 80, 240}};
}

struct Run {
  int ranks;
  int steps;
  fs::path store;
  std::string redundancy, dedup;
  int interval;
};

/// The seconds of a run of an application, or none if it failed.
std::optional<double> run_application(const Application& application, const Run& run,
                                      const fs::path& output) {
  std::vector<std::string> command = mpirun(run.ranks, application.name);
  command.insert(command.end(), application.arguments.begin(), application.arguments.end());
  command.insert(command.end(), {"--steps", std::to_string(run.steps)});
  const auto start = std::chrono::steady_clock::now();
  const bool ran =
      run_program(command,
                  {"BELAY_STORE=" + run.store.string(), "BELAY_REDUNDANCY=" + run.redundancy,
                   "BELAY_DEDUP=" + run.dedup, "BELAY_RANKS_PER_NODE=1",
                   fmt::format("BELAY_INTERVAL={} calls", run.interval)},
                  output);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return ran ? std::optional(seconds.count()) : std::nullopt;
}

Json trials_of(const std::string& contents, bool quick) {
  Json trials = Json::array();
  for (const int block : {4096, 16384})
    for (const int copies : {1, 2, 3, 4, 5, 6})
      for (const char* mode : {"none", "local", "collective", "collective-unshuffled"}) {
        if (contents == "distinct" &&
            (copies < 2 || copies > 3 || mode == std::string("collective-unshuffled")))
          continue;
        if (quick && (block == 16384 || copies == 2 || copies == 4 || copies == 5)) continue;
        trials.push_back({{"block", block}, {"copies", copies}, {"mode", mode}});
      }
  return trials;
}

/// Saves contents in all ways, in memory, so that it is not the disk that is measured.
std::optional<Json> measure(const std::string& contents, const fs::path& store,
                            const Arguments& arguments) {
  const Workplace stores(memory_backed(kRoomBytes, arguments.directory));
  const bool distinct = contents == "distinct";
  const std::uint64_t mebibytes = arguments.quick ? 2 : (distinct ? 16 : 8);
  return run_on_ranks(kRanks, "bench_dedup_ranks",
                      {{"contents", contents},
                       {"store", store.string()},
                       {"bytes", mebibytes << 20},
                       {"dir", stores.path().string()},
                       {"repetitions", arguments.quick ? 1 : (distinct ? 7 : 1)},
                       {"trials", trials_of(contents, arguments.quick)}},
                      arguments.directory);
}

std::optional<Json> measure_application(const Application& application,
                                        const Arguments& arguments) {
  const Workplace workplace(arguments.directory);
  const fs::path store = workplace.path() / "store";
  if (!run_application(
          application,
          {kRanks, application.saved_steps, store, "none", "local", application.saved_steps / 2},
          workplace.path() / "output"))
    return std::nullopt;
  return measure(application.name, store, arguments);
}

/// Whole runs, on the disk, interleaved.
std::optional<Json> measure_completion(const Application& application, int ranks,
                                       const Arguments& arguments) {
  constexpr std::array<const char*, 4> kWays = {"none", "local", "collective", "first only"};
  std::array<std::vector<double>, kWays.size()> seconds;
  for (int turn = 0; turn < (arguments.quick ? 1 : 3); ++turn)
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      const Workplace workplace(arguments.directory);
      const fs::path store = workplace.path() / "store", output = workplace.path() / "output";
      const bool first_only = way + 1 == kWays.size();
      const auto took = run_application(
          application,
          first_only ? Run{ranks, application.steps, store, "none", "local", 2 * application.steps}
                     : Run{ranks, application.steps, store, "replicas:3", kWays[way],
                           application.steps / 2},
          output);
      if (!took) return std::nullopt;
      seconds[way].push_back(*took);
    }
  Json runs = Json::array();
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    runs.push_back({{"application", application.name},
                    {"ranks", ranks},
                    {"mode", kWays[way]},
                    {"seconds", median(seconds[way])}});
  }
  return runs;
}

/// Everything that was asked for, as far as it works.
class Findings {
 public:
  void add(const char* list, const std::string& what, const std::optional<Json>& found) {
    if (!found) {
      fmt::print("{}: failed\n", what);
      ++failures_;
      return;
    }
    for (const Json& row : *found) findings_[list].push_back(row);
  }
  Json& json() { return findings_; }
  int failures() const { return failures_; }

 private:
  Json findings_ = {{"rows", Json::array()}, {"runs", Json::array()}};
  int failures_ = 0;
};

void announce(const std::string& what) {
  fmt::print("{}\n", what);
  std::fflush(stdout);
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());
  const fs::path memory = memory_backed(kRoomBytes, arguments.directory);
  announce(fmt::format("{} ranks, each a node; stores of figures 3 to 5 below {}", kRanks,
                       memory.string()));
  Findings findings;
  for (const Application& application : applications(arguments.quick)) {
    if (!arguments.wants(application.name)) continue;
    announce(application.name);
    findings.add("rows", application.name, measure_application(application, arguments));
  }
  for (const char* contents : {"mix", "distinct"})
    if (arguments.wants(contents)) {
      announce(contents);
      findings.add("rows", contents, measure(contents, {}, arguments));
    }
  if (arguments.wants("runs"))
    for (const Application& application : applications(arguments.quick))
      for (const int ranks : {4, kRanks}) {
        if (arguments.quick && ranks != kRanks) continue;
        announce(fmt::format("whole runs of {} on {} ranks", application.name, ranks));
        findings.add("runs", application.name, measure_completion(application, ranks, arguments));
      }
  Json& result = findings.json();
  result["machine"] = describe_machine(arguments.directory);
  result["stores"] = describe_machine(memory).at("file_system");
  result["quick"] = arguments.quick;
  print_tables(result);
  const std::vector<Target> targets = targets_of(result);
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
  CLI::App app("Versions with copies on other nodes: what each mode of dedup stores and sends.");
  add_common_options(app, arguments);
  add_only_option(app, arguments, {"cg", "hydro", "mix", "distinct", "runs"});
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
