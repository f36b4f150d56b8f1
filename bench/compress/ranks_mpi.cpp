// SPDX-License-Identifier: Apache-2.0
// bench_compress_ranks: the other side of load_versions() in compress/sources.cpp. Every rank
// restores the versions that the job names and writes each to a file.
#include "compress/checkpoints.hpp"
#include "measure/must.hpp"
#include "measure/rank_job.hpp"
#include "measure/saved_version.hpp"

#include <algorithm>

namespace belay::bench {
namespace {

using Json = nlohmann::json;

Checkpoint restore(Team& team, Options options, const VersionInfo& version) {
  Session session = must("open", team.open(std::move(options)));
  Arrays arrays;
  protect_saved(session, version.regions, arrays);
  must("restore", session.restore(version.version));
  Checkpoint checkpoint;
  for (const RegionInfo& region : version.regions)
    checkpoint.push_back({region.name, region.type, region.shape, std::move(arrays[region.name])});
  must("close", session.close());
  return checkpoint;
}

/// The second, the one in the middle and the last: in the first an application has done nothing
/// yet.
Json hand_over(Team& team, const Json& job) {
  Options options;
  options.store = job.at("store").get<std::string>();
  options.application = job.at("application").get<std::string>();
  Session session = must("open", team.open(options));
  std::vector<VersionInfo> versions = session.versions();
  must("close", session.close());
  if (versions.size() < 3) die(fmt::format("{} versions, not 3 or more", versions.size()));
  std::reverse(versions.begin(), versions.end());
  const std::filesystem::path directory = job.at("dir").get<std::string>();
  const std::vector<std::size_t> places = {1, versions.size() / 2, versions.size() - 1};
  for (std::size_t i = 0; i < places.size(); ++i)
    write_checkpoint(directory / fmt::format("{}.{}", i, team.rank()),
                     restore(team, options, versions[places[i]]));
  return Json::object();
}

}  // namespace
}  // namespace belay::bench

int main(int argc, char** argv) {
  return belay::bench::run_rank_job(argc, argv, belay::bench::hand_over);
}
