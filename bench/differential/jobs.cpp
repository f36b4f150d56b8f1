// SPDX-License-Identifier: Apache-2.0
#include "differential/jobs.hpp"

#include "measure/must.hpp"

#include <fstream>
#include <map>

namespace belay::bench {
namespace {

using Run = Json (*)(Team&, const Json&);

const std::map<std::string, Run> kJobs = {
    {"rows", run_rows},       {"series", run_series}, {"memory", run_memory}, {"sizes", run_sizes},
    {"regions", run_regions}, {"small", run_small},   {"sweep", run_sweep},
};

}  // namespace

void run_job(Team& team, const Json& job, const std::filesystem::path& result) {
  const auto found = kJobs.find(job.at("kind").get<std::string>());
  if (found == kJobs.end()) die("no job of kind " + job.at("kind").dump());
  const Json rows = found->second(team, job);
  if (team.rank() != 0) return;
  std::ofstream file(result);
  file << rows;
  if (!file.flush()) die("cannot write " + result.string());
}

Options store_options(const Json& job, const std::string& name) {
  Options options;
  options.store = std::filesystem::path(job.at("dir").get<std::string>()) / name;
  options.application = "bench_differential";
  options.on_log = [](LogLevel, std::string_view message) {
    fmt::print(stderr, "belay: {}\n", message);
  };
  return options;
}

}  // namespace belay::bench
