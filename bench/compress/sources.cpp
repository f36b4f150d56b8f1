// SPDX-License-Identifier: Apache-2.0
#include "compress/sources.hpp"

#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/rank_job.hpp"

#include <array>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr std::array<const char*, 3> kWhens = {"early", "middle", "late"};

struct Example {
  std::string name;
  std::vector<std::string> arguments, quick_arguments;
  int steps, quick_steps;
};

std::vector<Example> examples() {
  return {{"heat2d",
           {"--rows", "1024", "--cols", "2048"},
           {"--rows", "512", "--cols", "1024"},
           2400,
           900},
          {"cg", {"--size", "18"}, {"--size", "14"}, 36, 30},
          {"hydro", {"--size", "96"}, {"--size", "64"}, 420, 120},
          {"pic",
           {"--size", "128", "--particles", "4"},
           {"--size", "64", "--particles", "8"},
           120,
           60}};
}

std::optional<std::vector<Moment>> load_versions(const std::string& application,
                                                 const fs::path& store,
                                                 const SourceSettings& settings) {
  const Workplace files(settings.directory);
  if (!run_on_ranks(
          settings.ranks, "bench_compress_ranks",
          {{"application", application}, {"store", store.string()}, {"dir", files.path().string()}},
          settings.directory))
    return std::nullopt;
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < kWhens.size(); ++i) {
    moments.push_back({application, kWhens[i], {}});
    for (int rank = 0; rank < settings.ranks; ++rank)
      moments.back().ranks.push_back(read_checkpoint(files.path() / fmt::format("{}.{}", i, rank)));
  }
  return moments;
}

std::optional<std::vector<Moment>> run_example(const Example& example,
                                               const SourceSettings& settings) {
  const Workplace workplace(settings.directory);
  const fs::path store = workplace.path() / "store";
  const int steps = settings.quick ? example.quick_steps : example.steps;
  const auto& arguments = settings.quick ? example.quick_arguments : example.arguments;
  std::vector<std::string> command = mpirun(settings.ranks, example.name);
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.insert(command.end(), {"--steps", std::to_string(steps)});
  if (!run_program(command,
                   {"BELAY_STORE=" + store.string(), "BELAY_KEEP=100",
                    fmt::format("BELAY_INTERVAL={} calls", steps / 6)},
                   workplace.path() / "output"))
    return std::nullopt;
  return load_versions(example.name, store, settings);
}

}  // namespace

std::vector<Source> all_sources() {
  std::vector<Source> sources;
  for (const Example& example : examples())
    sources.push_back({example.name, [example](const SourceSettings& settings) {
                         return run_example(example, settings);
                       }});
  sources.push_back({"lammps", run_lammps});
  sources.push_back({"strided", [](const SourceSettings& settings) {
                       return std::optional(make_strided(settings.ranks, settings.quick));
                     }});
  return sources;
}

}  // namespace belay::bench
