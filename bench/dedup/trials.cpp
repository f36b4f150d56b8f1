// SPDX-License-Identifier: Apache-2.0
#include "trials.hpp"

#include "contents.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"
#include "measure/saved_version.hpp"

#include <filesystem>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

/// What one trial cost, each time that it was done. Bytes are the same every time.
struct Outcome {
  Json bytes;
  std::vector<double> blocking_ms, durable_ms, cpu_ms;
};

Arrays contents_of(Team& team, const Json& job) {
  const std::string name = job.at("contents");
  if (name == "mix") return make_mix(team, job.at("bytes"));
  if (name == "distinct") return make_distinct(team, job.at("bytes"));
  return load_newest(team, name, job.at("store").get<std::string>()).arrays;
}

Options options_for(const Json& trial, const fs::path& store) {
  Options options;
  options.store = store;
  options.application = "dedup";
  options.block = trial.at("block").get<std::uint64_t>();
  options.redundancy = fmt::format("replicas:{}", trial.at("copies").get<int>());
  options.dedup = trial.at("mode").get<std::string>();
  options.ranks_per_node = 1;
  options.on_log = [](LogLevel, std::string_view message) {
    fmt::print(stderr, "belay: {}\n", message);
  };
  return options;
}

Json bytes_of(Team& team, const Stats& stats) {
  const auto sum = [&](std::uint64_t mine) { return team.sum(static_cast<double>(mine)); };
  const auto max = [&](std::uint64_t mine) { return team.max(static_cast<double>(mine)); };
  const Ledger& last = stats.last;
  return {{"protected_bytes", sum(last.protected_bytes)},
          {"locally_distinct_bytes", sum(last.protected_bytes - last.duplicate_here_bytes)},
          {"own_stored_bytes", sum(last.written_bytes)},
          {"stored_bytes", sum(last.written_bytes + stats.kept_bytes)},
          {"sent_bytes", sum(stats.sent_bytes)},
          {"sent_most_bytes", max(stats.sent_bytes)},
          {"received_most_bytes", max(stats.kept_bytes)}};
}

void perform(Team& team, const Json& trial, const fs::path& directory, Arrays& arrays,
             Outcome& outcome) {
  const fs::path store = directory / "store";
  Session session = must("open", team.open(options_for(trial, store)));
  for (auto& [name, bytes] : arrays) must("protect", session.protect(name, bytes));
  const VersionCost cost = take_version(team, session);
  outcome.blocking_ms.push_back(cost.blocking_ms);
  outcome.durable_ms.push_back(cost.durable_ms);
  outcome.cpu_ms.push_back(cost.cpu_ms);
  outcome.bytes = bytes_of(team, session.stats());
  must("close", session.close());
  team.barrier();
  if (team.rank() == 0) fs::remove_all(store);
  team.barrier();
}

}  // namespace

Json run_trials(Team& team, const Json& job) {
  Arrays arrays = contents_of(team, job);
  const Json& trials = job.at("trials");
  const fs::path directory = job.at("dir").get<std::string>();
  std::vector<Outcome> outcomes(trials.size());
  // The first session of a process brings in code and memory.
  Outcome unused;
  if (!trials.empty()) perform(team, trials.back(), directory, arrays, unused);
  // Each begins in turn, so that none always comes after the same one.
  for (std::size_t turn = 0; turn < job.at("repetitions").get<std::size_t>(); ++turn)
    for (std::size_t i = 0; i < trials.size(); ++i) {
      const std::size_t trial = (i + turn) % trials.size();
      perform(team, trials[trial], directory, arrays, outcomes[trial]);
    }
  Json rows = Json::array();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Json row = trials[i];
    row["contents"] = job.at("contents");
    row["ranks"] = team.size();
    row.update(outcomes[i].bytes);
    row["blocking_ms"] = median(outcomes[i].blocking_ms);
    row["durable_ms"] = median(outcomes[i].durable_ms);
    row["cpu_ms"] = median(outcomes[i].cpu_ms);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace belay::bench
