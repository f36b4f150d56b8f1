// SPDX-License-Identifier: Apache-2.0
// bench_differential: what a differential version costs, next to writing, scanning and reading the
// same data plainly. Plans the jobs, runs each in processes of its own, and sums up.
#include "differential/findings.hpp"
#include "differential/jobs.hpp"
#include "measure/bench_main.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"

#include <fstream>
#include <optional>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("differential") {}

  std::string job;
  fs::path result;
};

/// One entry of the plan. `key` says where in the findings its result goes: an array takes the
/// results of several jobs, or the rows of one.
struct Planned {
  std::string key;
  std::string title;
  Json job;
  int ranks = 1;
  std::uint64_t memory_bytes = 0;  ///< at the most
  std::uint64_t disk_bytes = 0;
};

std::string case_name(int ranks, std::uint64_t bytes) {
  return bytes % kGiB == 0 ? fmt::format("{}x{}GiB", ranks, bytes / kGiB)
                           : fmt::format("{}x{}MiB", ranks, bytes / kMiB);
}

Planned plan_rows(int ranks, std::uint64_t bytes, int repetitions) {
  const std::string name = case_name(ranks, bytes);
  const std::uint64_t total = static_cast<std::uint64_t>(ranks) * bytes;
  return {"rows",
          fmt::format("{}: dirty 0 to 100 %, {} repetitions", name, repetitions),
          {{"kind", "rows"}, {"case", name}, {"bytes", bytes}, {"repetitions", repetitions}},
          ranks,
          2 * total,
          6 * total};
}

Planned plan_series(std::uint64_t bytes, double share, int versions) {
  return {"series",
          fmt::format("{} versions in a row at {} %", versions, share * 100),
          {{"kind", "series"}, {"bytes", bytes}, {"share", share}, {"versions", versions}},
          1,
          2 * bytes,
          6 * bytes};
}

Planned plan_sizes(std::vector<std::uint64_t> sizes, int repetitions, const fs::path& directory) {
  const auto total = [&] {
    std::uint64_t sum = 0;
    for (const std::uint64_t size : sizes) sum += size;
    return sum;
  };
  while (sizes.size() > 1 && (available_memory_bytes() < 2 * total() ||
                              available_disk_bytes(directory) < 4 * total())) {
    fmt::print("cost by size: leaving out {} MiB, memory or disk is short\n", sizes.back() / kMiB);
    sizes.pop_back();
  }
  return {
      "sizes", "cost by size", {{"kind", "sizes"}, {"sizes", sizes}, {"repetitions", repetitions}},
      1,       2 * total(),    4 * total()};
}

std::vector<Planned> make_plan(const Arguments& arguments) {
  const bool quick = arguments.quick;
  const int repetitions = quick ? 3 : 5;
  const std::uint64_t solo = quick ? 256 * kMiB : kGiB;
  const std::uint64_t blocks_per_region = quick ? 2 : 7;
  const std::uint64_t regions_bytes = 10000 * blocks_per_region * kBlockBytes;
  const std::uint64_t sweep = quick ? 64 * kMiB : kGiB;

  std::vector<Planned> plan = {plan_rows(4, (quick ? 32 : 128) * kMiB, repetitions),
                               plan_rows(1, solo, repetitions)};
  for (const double share : {0.005, 0.03, 0.10})
    plan.push_back(plan_series(solo, share, quick ? 40 : 100));
  plan.push_back(
      {"memory", "memory", {{"kind", "memory"}, {"bytes", kGiB}}, 1, 2 * kGiB, 5 * kGiB});
  plan.push_back(quick ? plan_sizes({64 * kMiB, 256 * kMiB, kGiB}, 3, arguments.directory)
                       : plan_sizes({256 * kMiB, kGiB, 8 * kGiB}, 9, arguments.directory));
  plan.push_back({"regions",
                  "cost by number of regions",
                  {{"kind", "regions"},
                   {"blocks_per_region", blocks_per_region},
                   {"repetitions", quick ? 3 : 9}},
                  1,
                  3 * regions_bytes,
                  12 * regions_bytes});
  plan.push_back({"small",
                  "many small regions",
                  {{"kind", "small"}, {"regions", 10000}, {"bytes", 100}, {"repetitions", 9}},
                  1,
                  64 * kMiB,
                  64 * kMiB});
  plan.push_back({"sweep",
                  "block sizes 512 B to 32 KiB",
                  {{"kind", "sweep"}, {"bytes", sweep}, {"repetitions", quick ? 3 : 5}},
                  1,
                  4 * sweep,
                  28 * sweep});
  return plan;
}

/// The same jobs under mpirun; beside the program, if the build has MPI.
fs::path ranks_program() { return this_program().string() + "_ranks"; }

/// Why the job cannot run here; empty if it can.
std::string obstacle(const Planned& planned, const fs::path& directory) {
  if (planned.ranks > 1 && !fs::exists(ranks_program())) return "this build has no MPI";
  if (available_memory_bytes() < planned.memory_bytes)
    return fmt::format("it wants {} MiB of free memory", planned.memory_bytes / kMiB);
  if (available_disk_bytes(directory) < planned.disk_bytes)
    return fmt::format("it wants {} MiB of free disk", planned.disk_bytes / kMiB);
  return {};
}

std::optional<Json> run_planned(Planned planned, const fs::path& parent) {
  const Workplace workplace(parent);
  const fs::path stage = workplace.path() / "stage";
  const fs::path result = workplace.path() / "result.json";
  fs::create_directory(stage);
  planned.job["dir"] = stage.string();
  std::vector<std::string> command = {this_program().string()};
  if (planned.ranks > 1)
    command = {"mpirun", "-n", std::to_string(planned.ranks), ranks_program().string()};
  command.insert(command.end(), {"--job", planned.job.dump(), "--result", result.string()});
  if (!run_program(command)) return std::nullopt;
  return Json::parse(std::ifstream(result));
}

void add_finding(Json& findings, const std::string& key, const Json& found) {
  if (key == "memory" || key == "small") {
    findings[key] = found;
  } else if (found.is_array()) {
    for (const Json& row : found) findings[key].push_back(row);
  } else {
    findings[key].push_back(found);
  }
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());

  Json findings = {{"machine", describe_machine(arguments.directory)},
                   {"quick", arguments.quick},
                   {"rows", Json::array()}};
  int failures = 0;
  for (const Planned& planned : make_plan(arguments)) {
    if (!arguments.wants(planned.key)) continue;
    if (const std::string why = obstacle(planned, arguments.directory); !why.empty()) {
      fmt::print("{}: skipped, {}\n", planned.title, why);
      continue;
    }
    fmt::print("{}\n", planned.title);
    std::fflush(stdout);
    if (const auto found = run_planned(planned, arguments.directory)) {
      add_finding(findings, planned.key, *found);
    } else {
      fmt::print("{}: failed\n", planned.title);
      ++failures;
    }
  }
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
  CLI::App app("What a differential version costs, next to plain writes, scans and reads.");
  add_common_options(app, arguments);
  add_only_option(app, arguments,
                  {"rows", "series", "memory", "sizes", "regions", "small", "sweep"});
  app.add_option("--job", arguments.job, "run one job in this process (JSON)")->group("");
  app.add_option("--result", arguments.result, "where that job's result goes")->group("");
  return run_bench(app, argc, argv, [&] {
    if (arguments.job.empty()) return run_all(arguments);
    run_job(*make_solo_team(), Json::parse(arguments.job), arguments.result);
    return 0;
  });
}
