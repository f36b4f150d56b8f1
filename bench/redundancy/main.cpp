// SPDX-License-Identifier: Apache-2.0
// bench_redundancy: CPU time and speed of copies and shards on other nodes, and of coming back
// after losses, with four ranks that play nodes and stores in memory.
#include "measure/bench_main.hpp"
#include "measure/machine.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/rank_job.hpp"
#include "measure/report.hpp"

namespace belay::bench {
namespace fs = std::filesystem;
using Json = nlohmann::json;
namespace {

constexpr int kRanks = 4;
constexpr double kBound = 1.25;  ///< CPU time against the least that moving the bytes takes

struct Arguments : CommonArguments {
  Arguments() : CommonArguments("redundancy") {}

  int repetitions = 15;
};

Json schemes() {
  const auto scheme = [](const char* redundancy, int members, int shards, int losses) {
    return Json{
        {"redundancy", redundancy}, {"members", members}, {"shards", shards}, {"losses", losses}};
  };
  return {scheme("replicas:2", 0, 1, 1), scheme("erasure:3+1", 3, 1, 1),
          scheme("erasure:2+2", 2, 2, 2)};
}

double number(const Json& row, const char* key) { return row.at(key).get<double>(); }

double megabytes_per_s(double bytes, double ms) { return bytes / 1e3 / ms; }

void print_row(const Json& row) {
  const auto name = row.at("redundancy").get<std::string>();
  if (!row.at("supported").get<bool>())
    return fmt::print("{:12} unsupported: {}\n", name, row.at("problem").get<std::string>());
  const double bytes = number(row, "bytes");
  fmt::print("{:12} {:5.0f} {:5.0f} {:6.0f} {:6.0f} | {:5.0f} {:5.0f} {:6.2f} {:7.2f} |", name,
             number(row, "send_cpu_ms"), number(row, "write_cpu_ms"), number(row, "remove_cpu_ms"),
             number(row, "encode_cpu_ms"), number(row, "floor_cpu_ms"), number(row, "cpu_ms"),
             number(row, "cpu_per_floor"), number(row, "cpu_per_floor_with_removal"));
  fmt::print(" {:7.0f} {:7.0f} | {:7.0f} {:7.0f} | {:5.2f} {:5.2f}\n",
             megabytes_per_s(bytes, number(row, "durable_ms")),
             megabytes_per_s(bytes, number(row, "cpu_ms")),
             megabytes_per_s(bytes, number(row, "restore_ms")),
             megabytes_per_s(bytes, number(row, "restore_cpu_ms")),
             number(row, "sent_bytes") / bytes, number(row, "written_bytes") / bytes);
}

void print_table(const Json& rows) {
  fmt::print("\n{:12} {:^25} | {:^26} | {:^15} | {:^15} | {:^11}\n", "", "CPU ms of all data once",
             "CPU ms of a version", "MB/s, encode", "MB/s, rebuild", "of the data");
  fmt::print("{:12} {:>5} {:>5} {:>6} {:>6} | {:>5} {:>5} {:>6} {:>7} |", "", "send", "write",
             "remove", "kernel", "least", "seen", "ratio", "removed");
  fmt::print(" {:>7} {:>7} | {:>7} {:>7} | {:>5} {:>5}\n", "elapsed", "per CPU", "elapsed",
             "per CPU", "sent", "files");
  for (const Json& row : rows) print_row(row);
  fmt::print(
      "least: send and write of the bytes that the scheme must move, and the kernel; removed: the\n"
      "ratio if the removal of the version that is replaced counts, too. MB/s: of protected data;\n"
      "rebuild is restore() after the loss of one node (2+2: two), healing included.\n"
      "For orientation, the field's best-known component on such a machine, MB per CPU second:\n"
      "partner copies 750-1030, XOR 1100-1250, Reed-Solomon with two parities 460-600.\n\n");
}

std::vector<Target> targets_of(const Json& rows) {
  std::vector<Target> targets;
  for (const Json& row : rows)
    if (row.at("supported").get<bool>())
      targets.push_back({row.at("redundancy").get<std::string>() + "-cpu-per-least",
                         number(row, "cpu_per_floor"), kBound});
  return targets;
}

int run_all(const Arguments& arguments) {
  allow_many_ranks();
  fs::create_directories(arguments.directory);
  if (arguments.json.has_parent_path()) fs::create_directories(arguments.json.parent_path());
  const std::uint64_t bytes = std::uint64_t{arguments.quick ? 32u : 128u} << 20;
  // Three stores, each with two versions at a time, of up to twice the data.
  const fs::path memory = memory_backed(12 * kRanks * bytes, arguments.directory);
  const Json machine = describe_machine(memory);
  fmt::print("{} ranks, each a node, {} MiB each, all changed; stores below {} ({})\n", kRanks,
             bytes >> 20, memory.string(), machine.at("file_system").get<std::string>());
  std::fflush(stdout);
  const Workplace stores(memory);
  const auto rows = run_on_ranks(kRanks, "bench_redundancy_ranks",
                                 {{"dir", stores.path().string()},
                                  {"bytes", bytes},
                                  {"repetitions", arguments.quick ? 3 : arguments.repetitions},
                                  {"schemes", schemes()}},
                                 arguments.directory);
  if (!rows) return 1;
  print_table(*rows);
  const std::vector<Target> targets = targets_of(*rows);
  write_json(arguments.json, {{"machine", machine},
                              {"quick", arguments.quick},
                              {"ranks", kRanks},
                              {"rows", *rows},
                              {"targets", to_json(targets)}});
  print_targets(targets);
  return 0;
}

}  // namespace
}  // namespace belay::bench

int main(int argc, char** argv) {
  using namespace belay::bench;
  Arguments arguments;
  CLI::App app("Versions that survive the loss of nodes: CPU time and speed, to make and to use.");
  add_common_options(app, arguments);
  app.add_option("--repetitions", arguments.repetitions, "versions of each scheme")
      ->check(CLI::Range(1, 1000));
  return run_bench(app, argc, argv, [&] { return run_all(arguments); });
}
