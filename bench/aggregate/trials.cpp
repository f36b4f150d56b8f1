// SPDX-License-Identifier: Apache-2.0
#include "aggregate/trials.hpp"

#include "aggregate/contents.hpp"
#include "aggregate/slow_tier.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <filesystem>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

/// What one trial gave, once.
struct Sample {
  double blocking_ms = 0;  ///< the longest of the ranks
  double global_ms = 0;    ///< from checkpoint() until the version is on the global tier
  double cpu_ms = 0;       ///< over both, of all ranks
  double open_ms = 0;      ///< open() where only the global tier has something
  double restore_ms = 0;   ///< restore() alone, after it
  double files = 0;        ///< of the version, there
  double file_bytes = 0;
  double read_bytes = 0;       ///< by restore()
  double rewritten_bytes = 0;  ///< to the global tier, by restore()
  double write_names = 0;      ///< operations on names, until the version is there
  double read_names = 0;
};

struct Places {
  fs::path local, global;
};

class Trials {
 public:
  Trials(Team& team, const Json& job)
      : team_(team),
        places_{job.at("local").get<std::string>(), job.at("global").get<std::string>()},
        name_ns_(static_cast<std::uint64_t>(job.at("name_ms").get<double>() * 1e6)),
        contents_(contents_of(team, job)),
        checksum_(contents_.checksum()),
        tier_(job.at("state").get<std::string>(), places_.global) {}

  Sample perform(const Json& trial) {
    Sample sample;
    clear(places_.local);
    clear(places_.global);
    begin(trial);
    save(trial, sample);
    look_at_files(sample);
    clear(places_.local);
    if (team_.rank() == 0) drop_caches(places_.global);
    begin(trial);
    restore(trial, sample);
    return sample;
  }

  double protected_bytes() { return team_.sum(static_cast<double>(total_bytes(contents_.arrays))); }

 private:
  static Contents contents_of(Team& team, const Json& job) {
    const std::string name = job.at("contents");
    if (name == "fields") return make_fields(team, job.at("bytes"));
    return {load_newest(team, name, job.at("store").get<std::string>())};
  }

  void clear(const fs::path& directory) {
    team_.barrier();
    if (team_.rank() == 0) {
      fs::remove_all(directory);
      fs::create_directories(directory);
    }
    team_.barrier();
  }

  void begin(const Json& trial) {
    const auto rate = trial.at("MBps").get<std::uint64_t>() * 1'000'000;
    if (team_.rank() == 0) tier_.begin({rate, rate == 0 ? 0 : name_ns_});
    team_.barrier();
  }

  /// What a user would say who knows the directory.
  Options options_for(const Json& trial) const {
    Options options;
    options.store = places_.local;
    options.global = places_.global;
    options.application = "aggregate";
    options.levels = "local:1,global:1";
    options.codec = trial.at("codec").get<std::string>();
    options.aggregate = trial.at("aggregate").get<std::uint64_t>();
    options.node = "one";
    const auto rate = trial.at("MBps").get<std::uint64_t>();
    const std::uint64_t writers =
        static_cast<std::uint64_t>(team_.size()) / trial.at("aggregate").get<std::uint64_t>();
    if (rate != 0) options.bandwidth = fmt::format("{}KB/s", 1000 * rate / writers);
    options.log = "error";  // that something was lost is meant
    options.on_log = [](LogLevel, std::string_view message) {
      fmt::print(stderr, "belay: {}\n", message);
    };
    return options;
  }

  void save(const Json& trial, Sample& sample) {
    Session session = must("open", open_with(tier_.files(), options_for(trial)));
    contents_.protect_in(session);
    team_.barrier();
    const Traffic before = tier_.traffic();
    const VersionCost cost = take_version(team_, session);
    sample.blocking_ms = team_.max(static_cast<double>(session.stats().last.blocking_ns) / 1e6);
    sample.global_ms = cost.durable_ms;
    sample.cpu_ms = cost.cpu_ms;
    team_.barrier();
    sample.write_names =
        static_cast<double>(tier_.traffic().name_operations - before.name_operations);
    const std::string level = session.versions().front().level;
    if (level != "local+global") die(fmt::format("the version has level {}", level));
    must("close", session.close());
  }

  void look_at_files(Sample& sample) {
    team_.barrier();
    for (const auto& entry : fs::recursive_directory_iterator(places_.global))
      if (entry.path().filename().string().starts_with("bundle-")) {
        ++sample.files;
        sample.file_bytes += static_cast<double>(entry.file_size());
      }
  }

  void restore(const Json& trial, Sample& sample) {
    contents_.wipe();
    team_.barrier();
    Stopwatch opening;
    Session session = must("open", open_with(tier_.files(), options_for(trial)));
    opening.stop();
    sample.open_ms = opening.elapsed_ms(team_);
    contents_.protect_in(session);
    team_.barrier();
    const Traffic before = tier_.traffic();
    team_.barrier();
    Stopwatch watch;
    must("restore", session.restore());
    watch.stop();
    sample.restore_ms = watch.elapsed_ms(team_);
    const Traffic after = tier_.traffic();
    sample.read_bytes = static_cast<double>(after.read_bytes - before.read_bytes);
    sample.rewritten_bytes = static_cast<double>(after.written_bytes - before.written_bytes);
    sample.read_names = static_cast<double>(after.name_operations - before.name_operations);
    if (contents_.checksum() != checksum_) die("restore() gave other contents");
    must("close", session.close());
  }

  Team& team_;
  Places places_;
  std::uint64_t name_ns_;
  Contents contents_;
  std::uint64_t checksum_;
  SlowTier tier_;
};

Json to_row(const Json& trial, const std::vector<Sample>& samples) {
  Json row = trial;
  const auto add = [&](const char* name, double Sample::*member) {
    row[name] = median_of(samples, member);
  };
  add("blocking_ms", &Sample::blocking_ms);
  add("global_ms", &Sample::global_ms);
  add("cpu_ms", &Sample::cpu_ms);
  add("open_ms", &Sample::open_ms);
  add("restore_ms", &Sample::restore_ms);
  add("files", &Sample::files);
  add("file_bytes", &Sample::file_bytes);
  add("read_bytes", &Sample::read_bytes);
  add("rewritten_bytes", &Sample::rewritten_bytes);
  add("write_names", &Sample::write_names);
  add("read_names", &Sample::read_names);
  return row;
}

}  // namespace

Json run_trials(Team& team, const Json& job) {
  Trials trials(team, job);
  const Json& wanted = job.at("trials");
  std::vector<std::vector<Sample>> samples(wanted.size());
  // The first session of a process brings in code and memory.
  if (!wanted.empty()) static_cast<void>(trials.perform(wanted.back()));
  // Each begins in turn, so that none always comes after the same one.
  for (std::size_t turn = 0; turn < job.at("repetitions").get<std::size_t>(); ++turn)
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::size_t trial = (i + turn) % wanted.size();
      samples[trial].push_back(trials.perform(wanted[trial]));
    }
  const double protected_bytes = trials.protected_bytes();
  Json rows = Json::array();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    Json row = to_row(wanted[i], samples[i]);
    row["contents"] = job.at("contents");
    row["ranks"] = team.size();
    row["protected_bytes"] = protected_bytes;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace belay::bench
