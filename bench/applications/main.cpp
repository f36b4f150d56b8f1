// SPDX-License-Identifier: Apache-2.0
// bench_applications: bytes and time of full and differential versions over the runs of the
// examples. Each runs under mpirun as a user would run it, keeping all its versions; then these are
// taken again in several ways (replay.hpp).
#include "applications/findings.hpp"
#include "measure/bench_main.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"

#include <chrono>
#include <fstream>
#include <optional>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("applications") {}
};

struct Application {
  std::string name;
  std::vector<std::string> arguments;
  int interval = 1;  ///< steps between versions
  int ranks = 4;
};

std::vector<Application> make_plan(bool quick) {
  if (quick)
    return {{"heat2d", {"--rows", "2048", "--cols", "2048", "--steps", "640"}, 80},
            {"pic", {"--size", "64", "--particles", "16", "--steps", "80"}, 10},
            {"cg", {"--size", "36"}, 10},
            {"hydro", {"--size", "48"}, 45}};
  return {{"heat2d", {"--rows", "2048", "--cols", "4096", "--steps", "1600"}, 100, 8},
          {"pic", {"--size", "128", "--particles", "10", "--steps", "150"}, 10, 8},
          {"cg", {"--size", "32"}, 6, 8},
          {"hydro", {"--size", "96"}, 100, 8}};
}

Json make_ways(bool quick) {
  Json ways = Json::array();
  for (const char* layout : {"arrays", "serialized"})
    for (const int block : {1024, 4096, 16384, 65536})
      if (block == 16384 || (!quick && (block != 1024 || layout == std::string("arrays"))))
        ways.push_back({{"layout", layout}, {"block", block}});
  return ways;
}

std::vector<std::string> mpirun(int ranks, const fs::path& program) {
  return {"mpirun", "-n", std::to_string(ranks), program.string()};
}

/// Runs the application, and then its versions again.
std::optional<Json> measure(const Application& application, const Arguments& arguments) {
  const Workplace workplace(arguments.directory);
  const fs::path store = workplace.path() / "store", result = workplace.path() / "result.json";
  const fs::path programs = this_program().parent_path();
  std::vector<std::string> command = mpirun(application.ranks, programs / application.name);
  command.insert(command.end(), application.arguments.begin(), application.arguments.end());
  const auto start = std::chrono::steady_clock::now();
  if (!run_program(command,
                   {"BELAY_STORE=" + store.string(), "BELAY_KEEP=100000",
                    fmt::format("BELAY_INTERVAL={} calls", application.interval)},
                   workplace.path() / "output"))
    return std::nullopt;
  const std::chrono::duration<double> run = std::chrono::steady_clock::now() - start;

  const fs::path stage = workplace.path() / "stage";
  fs::create_directory(stage);
  const Json job = {{"application", application.name},
                    {"store", store.string()},
                    {"dir", stage.string()},
                    {"ways", make_ways(arguments.quick)}};
  command = mpirun(application.ranks, programs / "bench_applications_ranks");
  command.insert(command.end(), {"--job", job.dump(), "--result", result.string()});
  if (!run_program(command)) return std::nullopt;
  Json found = Json::parse(std::ifstream(result));
  found["application"] = application.name;
  found["ranks"] = application.ranks;
  found["arguments"] = application.arguments;
  found["interval"] = application.interval;
  found["run_s"] = run.count();
  return found;
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  const fs::path figures = arguments.json.has_parent_path() ? arguments.json.parent_path() : ".";
  fs::create_directories(figures);
  Json findings = {{"machine", describe_machine(arguments.directory)},
                   {"quick", arguments.quick},
                   {"applications", Json::array()}};
  int failures = 0;
  for (const Application& application : make_plan(arguments.quick)) {
    if (!arguments.wants(application.name)) continue;
    fmt::print("{} on {} ranks, a version every {} steps\n", application.name, application.ranks,
               application.interval);
    std::fflush(stdout);
    if (const auto found = measure(application, arguments)) {
      findings["applications"].push_back(*found);
    } else {
      fmt::print("{}: failed\n", application.name);
      ++failures;
    }
  }
  findings["summary"] = summarize(findings.at("applications"));
  print_tables(findings);
  if (!findings.at("applications").empty()) draw_figures(findings, figures);
  const std::vector<Target> targets = targets_of(findings);
  findings["targets"] = to_json(targets);
  write_json(arguments.json, findings);
  print_targets(targets);
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace belay::bench

int main(int argc, char** argv) {
  using namespace belay::bench;
  Arguments arguments;
  CLI::App app("Full and differential versions over the runs of real applications.");
  add_common_options(app, arguments);
  add_only_option(app, arguments, {"heat2d", "pic", "cg", "hydro"});
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
