// SPDX-License-Identifier: Apache-2.0
// Many versions in a row: do segments that slowly empty cost more than the changes themselves? And
// what does a session hold in memory meanwhile?
#include "differential/jobs.hpp"
#include "measure/cost.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"

namespace belay::bench {

Json run_series(Team& team, const Json& job) {
  const std::uint64_t bytes = job.at("bytes");
  const double share = job.at("share");
  const int versions = job.at("versions");
  Image image(bytes, 2000);
  Session session = must("open", team.open(store_options(job, "store")));
  must("protect", session.protect("image", image.words()));
  take_version(team, session);

  std::vector<VersionCost> costs;
  std::vector<double> plain_writes;
  double written_bytes = 0, dirty_bytes = 0, carried_bytes = 0;
  for (int version = 0; version < versions; ++version) {
    if (version % 10 == 0)
      plain_writes.push_back(measure_plain_write(team, image, job.at("dir").get<std::string>()));
    dirty_bytes += static_cast<double>(image.change(share, Pattern::scattered, kBlockBytes));
    costs.push_back(take_version(team, session));
    written_bytes += costs.back().written_bytes;
    carried_bytes += static_cast<double>(session.stats().last.carried_bytes);
  }
  must("close", session.close());

  std::vector<double> durable;
  for (const VersionCost& cost : costs) durable.push_back(cost.durable_ms);
  return {{"bytes", bytes},
          {"dirty", share * 100},
          {"versions", versions},
          {"written_per_dirty", written_bytes / dirty_bytes},
          {"carried_per_dirty", carried_bytes / dirty_bytes},
          {"blocking_ms", median_of(costs, &VersionCost::blocking_ms)},
          {"durable_ms", median(durable)},
          {"worst_durable_ms", largest(durable)},
          {"plain_write_ms", median(plain_writes)}};
}

namespace {

/// What the first session of a process brings in, whatever the size of its image: pages of code
/// above all. Returns the bytes beyond staging.
double run_first_session(Team& team, const Json& job) {
  Image small(kBlockBytes, 3001);
  restart_memory_peak();
  const auto before = static_cast<double>(memory_peak_bytes());
  Session session = must("open", team.open(store_options(job, "first")));
  must("protect", session.protect("image", small.words()));
  for (int version = 0; version < 2; ++version) {
    take_version(team, session);
    small.change(1, Pattern::contiguous, kBlockBytes);
  }
  const auto staging = static_cast<double>(session.stats().staging_bytes);
  const double growth = static_cast<double>(memory_peak_bytes()) - before - staging;
  must("close", session.close());
  return growth;
}

}  // namespace

Json run_memory(Team& team, const Json& job) {
  Image image(job.at("bytes"), 3000);
  const double first_bytes = run_first_session(team, job);
  restart_memory_peak();
  const std::uint64_t before = memory_peak_bytes();
  Session session = must("open", team.open(store_options(job, "store")));
  must("protect", session.protect("image", image.words()));
  for (int version = 0; version < 3; ++version) {
    take_version(team, session);
    image.change(1, Pattern::contiguous, kBlockBytes);
  }
  const std::uint64_t after = memory_peak_bytes();
  const Stats stats = session.stats();
  must("close", session.close());

  const auto blocks = static_cast<double>(image.bytes().size() / kBlockBytes);
  const double growth = static_cast<double>(after) - static_cast<double>(before);
  return {{"bytes", job.at("bytes")},
          {"growth_bytes", growth},
          {"first_session_bytes", first_bytes},
          {"staging_bytes", stats.staging_bytes},
          {"table_bytes", stats.table_bytes},
          {"growth_per_block", (growth - static_cast<double>(stats.staging_bytes)) / blocks},
          {"table_per_block", static_cast<double>(stats.table_bytes) / blocks}};
}

}  // namespace belay::bench
