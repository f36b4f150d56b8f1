// SPDX-License-Identifier: Apache-2.0
// bench_compress: sizes and speeds of checkpoints of many ranks, merged and compressed as the paper
// does it and as Belay does. Runs that it makes itself, at several moments.
#include "compress/findings.hpp"
#include "compress/sources.hpp"
#include "measure/bench_main.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"

#include <chrono>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr int kRanks = 32;
constexpr int kQuickRanks = 16;

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("compress") {}

  int ranks() const { return quick ? kQuickRanks : kRanks; }
};

void announce(const std::string& what) {
  fmt::print("{}\n", what);
  std::fflush(stdout);
}

/// False: the run failed.
bool measure(const Source& source, const Arguments& arguments, Json& findings) {
  const auto start = std::chrono::steady_clock::now();
  const Workplace workplace(arguments.directory);
  auto moments = source.make({arguments.ranks(), arguments.quick, workplace.path()});
  if (!moments) return false;
  if (arguments.quick) moments->erase(moments->begin() + 1);
  const std::chrono::duration<double> made = std::chrono::steady_clock::now() - start;
  announce(fmt::format("  {} moments of {:.1f} MB in {:.1f} s", moments->size(),
                       static_cast<double>(total_bytes(moments->front().ranks)) / 1e6,
                       made.count()));
  const TrialSettings settings = {
      arguments.quick ? std::vector<int>{1, kQuickRanks} : std::vector<int>{1, 8, kRanks},
      arguments.quick ? 1 : 3, arguments.quick ? 5 : 15, arguments.quick};
  for (const Json& row : try_schemes(*moments, settings)) findings["schemes"].push_back(row);
  for (const Json& row : try_codecs(*moments, settings)) findings["codecs"].push_back(row);
  return true;
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());
  Json findings = {{"machine", describe_machine(arguments.directory)},
                   {"quick", arguments.quick},
                   {"ranks", arguments.ranks()},
                   {"bandwidth", kBandwidth},
                   {"skipped", Json::array()},
                   {"schemes", Json::array()},
                   {"codecs", Json::array()}};
  int failures = 0;
  for (const Source& source : all_sources()) {
    if (!arguments.wants(source.name)) continue;
    if (source.name == "lammps" && !has_lammps()) {
      announce("lammps: skipped, since it is not installed (apt-get install lammps)");
      findings["skipped"].push_back(source.name);
      continue;
    }
    announce(fmt::format("{} on {} ranks", source.name, arguments.ranks()));
    if (!measure(source, arguments, findings)) {
      announce(fmt::format("{}: failed", source.name));
      ++failures;
    }
  }
  if (findings.at("schemes").empty()) return 1;
  print_tables(findings);
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
  CLI::App app("Checkpoints of many ranks, merged and compressed in the paper's ways and Belay's.");
  add_common_options(app, arguments);
  add_only_option(app, arguments, {"heat2d", "cg", "hydro", "pic", "lammps", "strided"});
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
