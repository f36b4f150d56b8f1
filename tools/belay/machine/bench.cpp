// SPDX-License-Identifier: Apache-2.0
// belay bench: how fast are memory, hashes and files here? docs/json.md has the file that
// it leaves for the models.
#include "tools/belay/machine/bench.hpp"

#include "base/settings.hpp"
#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/host.hpp"
#include "store/tier.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/machine/machine_facts.hpp"
#include "tools/belay/machine/place.hpp"
#include "tools/belay/rehearse/process_tree.hpp"
#include "tools/belay/rehearse/scratch_directory.hpp"
#include "tools/belay/status_line.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ctime>
#include <memory>

namespace belay::tool {
namespace {

constexpr std::size_t kMiB = 1 << 20;

struct BenchOptions {
  bool quick = false;
  bool no_save = false;
};

/// How much of everything; the rounds end early when the time is up.
struct Effort {
  std::size_t memory_bytes;
  std::size_t file_bytes;
  std::size_t rounds;
  std::uint64_t time_ns;
};
constexpr Effort kQuick = {64 * kMiB, 64 * kMiB, 3, 4'000'000'000};
constexpr Effort kFull = {256 * kMiB, 512 * kMiB, 7, 25'000'000'000};

BenchSizes sizes_of(const Effort& effort, const FileSystem& system) {
  const auto most = [](std::size_t wanted, std::uint64_t available) {
    return static_cast<std::size_t>(std::min<std::uint64_t>(wanted, available));
  };
  return {.memory_bytes = most(effort.memory_bytes, available_memory_bytes() / 8),
          .file_bytes = most(effort.file_bytes, system.free_bytes / 4),
          .most_write_ns = effort.time_ns / effort.rounds / 2};
}

Result<void> run_rounds(std::vector<Measurement>& measurements, const Effort& effort,
                        const Interrupts& interrupts, StatusLine& status) {
  os::Clock& clock = os::system_clock();
  const std::uint64_t start = clock.now_ns();
  for (std::size_t round = 0; round < effort.rounds; ++round)
    for (Measurement& measurement : measurements) {
      if (interrupts.pending()) return fail(Code::busy, "interrupted");
      // A figure that another one needs comes right after it: only whole rounds are left out.
      if (round > 0 && &measurement == &measurements.front() &&
          clock.now_ns() - start > effort.time_ns)
        return {};
      status.show(
          fmt::format("round {} of {}: {}", round + 1, effort.rounds, measurement.figure.meaning));
      BELAY_TRY(within(measurement.figure.name, measurement.sample(measurement.figure)));
    }
  return {};
}

std::string shown(const Figure& figure, double value) {
  if (figure.unit == Figure::Unit::seconds) return fmt::format("{:.3f} ms", value * 1e3);
  return fmt::format("{:.2f} GB/s", value * 1e-9);
}

void say_figures(const Shell& shell, const std::vector<Measurement>& measurements) {
  shell.say(fmt::format("{:<14} {:>8} {:>12} {:>8}  {}", "figure", "threads", "median", "spread",
                        "what"));
  for (const auto& [figure, sample] : measurements)
    shell.say(fmt::format("{:<14} {:>8} {:>12} {:>7.0f}%  {}", figure.name, figure.threads,
                          shown(figure, figure.median()), figure.spread() * 100, figure.meaning));
}

nlohmann::json to_json(const Figure& figure) {
  return {{"meaning", figure.meaning},
          {"unit", figure.unit == Figure::Unit::seconds ? "s" : "bytes/s"},
          {"threads", figure.threads},
          {"median", figure.median()},
          {"lowest", figure.quantile(0)},
          {"highest", figure.quantile(1)},
          {"spread", figure.spread()},
          {"samples", figure.samples.size()}};
}

std::string date_now() {
  const std::time_t now = os::system_clock().wall_ns() / 1'000'000'000;
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

nlohmann::json to_json(const std::vector<Measurement>& measurements, const Place& place,
                       const FileSystem& system, bool quick) {
  auto figures = nlohmann::json::object();
  for (const auto& [figure, sample] : measurements) figures[figure.name] = to_json(figure);
  return {{"schema", "belay/bench/1"},
          {"belay", BELAY_VERSION},
          {"date", date_now()},
          {"host", os::host_name()},
          {"store", place.store},
          {"quick", quick},
          {"machine",
           {{"processor", processor_model()},
            {"processors", os::usable_processors()},
            {"vectors", widest_vectors()},
            {"memory_bytes", total_memory_bytes()},
            {"kernel", kernel_release()},
            {"file_system", system.name}}},
          {"figures", figures}};
}

/// Beside the directories of the nodes, where a store has nothing of its own: nobody takes the file
/// for a part of it. One for each host, so that hosts that share a store do not overwrite figures.
Result<std::string> save(const Place& place, const nlohmann::json& document) {
  if (!place.exists) BELAY_TRY(os::posix_files().make_directory(place.store));
  const auto directory = store::make_local_tier(os::posix_files(), place.store);
  const std::string name = fmt::format("machine-{}.json", os::host_name());
  const std::string text =
      document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  BELAY_TRY(store::put_whole(*directory, name, std::as_bytes(std::span(text)),
                             /*exclusive=*/false));
  return place.store + "/" + name;
}

struct Outcome {
  nlohmann::json document;
  std::string saved;
};

Result<Outcome> measure(Shell& shell, const BenchOptions& options, const Interrupts& interrupts) {
  const Effort& effort = options.quick ? kQuick : kFull;
  BELAY_ASSIGN(const std::string store, only_one(shell.stores()));
  BELAY_ASSIGN(const Place place, find_place(store));
  BELAY_ASSIGN(const FileSystem system, file_system_of(place.directory));
  const BenchSizes sizes = sizes_of(effort, system);
  StatusLine status(shell.draws());
  std::vector<Measurement> measurements;
  {
    BELAY_ASSIGN(const auto scratch, ScratchDirectory::make(place.directory, ".belay-bench-"));
    BELAY_ASSIGN(measurements, memory_measurements(sizes));
    BELAY_ASSIGN(auto files, file_measurements(scratch->path(), sizes));
    measurements.insert(measurements.end(), files.begin(), files.end());
    BELAY_TRY(run_rounds(measurements, effort, interrupts, status));
  }
  status.clear();
  Outcome outcome{.document = to_json(measurements, place, system, options.quick), .saved = {}};
  if (!options.no_save) {
    BELAY_ASSIGN(outcome.saved, save(place, outcome.document));
  }
  say_figures(shell, measurements);
  return outcome;
}

Exit run_bench(Shell& shell, const BenchOptions& options) {
  const Interrupts interrupts;  // the scratch directory goes before a signal takes effect
  auto outcome = measure(shell, options, interrupts);
  if (!outcome) return shell.fail(outcome.error());
  if (!outcome->saved.empty()) shell.say("saved in " + outcome->saved);
  outcome->document["saved"] =
      outcome->saved.empty() ? nlohmann::json() : nlohmann::json(outcome->saved);
  shell.answer(outcome->document);
  return Exit::ok;
}

}  // namespace

double Figure::quantile(double share) const {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

void add_bench(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command =
      shell.add(tool, "bench", "Measure memory, hashes and files of this machine",
                {"belay bench --quick", "belay bench --store /local/scratch/store",
                 "belay bench --json --no-save | jq .figures.write.median", "",
                 "The figures are kept as machine-HOST.json in the store's directory, where models",
                 "of cost look for them; `belay bench` again replaces them."},
                [&shell, options] { return run_bench(shell, *options); });
  command.add_flag("--quick", options->quick, "Fewer rounds and smaller files: some seconds");
  command.add_flag("--no-save", options->no_save, "Only print the figures");
}

}  // namespace belay::tool
