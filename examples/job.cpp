// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <vector>

namespace job {
namespace {

MPI_Comm computing = MPI_COMM_WORLD;

std::string picture_kind(const std::string& path) {
  if (path.ends_with(".png") || path.ends_with(".npy")) return {};
  return path + ": must end in .png or .npy";
}

void add_option(CLI::App& app, const Option& option) {
  if (const auto whole = std::get_if<long*>(&option.variable)) {
    app.add_option(option.name, **whole, option.help)
        ->capture_default_str()
        ->check(CLI::Range(option.least, option.most));
  } else if (const auto number = std::get_if<double*>(&option.variable)) {
    app.add_option(option.name, **number, option.help)
        ->capture_default_str()
        ->check(CLI::NonNegativeNumber);
  } else if (const auto flag = std::get_if<bool*>(&option.variable)) {
    app.add_flag(option.name, **flag, option.help);
  } else {
    app.add_option(option.name, *std::get<std::string*>(option.variable), option.help);
  }
}

}  // namespace

void parse(const std::string& about, const std::vector<Option>& options, Settings& settings,
           int argc, char** argv) {
  CLI::App app(about);
  for (const Option& option : options) add_option(app, option);
  add_option(app, {"--steps", "stop after so many steps", &settings.steps, 0, 1000000000});
  app.add_option("--picture", settings.picture, "draw the final field: FILE.png, or FILE.npy")
      ->check(CLI::Validator(picture_kind, "FILE"));
  add_option(app,
             {"--pace", "sleep so many milliseconds after each step", &settings.pace_ms, 0, 60000});
  app.footer("BELAY_INTERVAL says how often to checkpoint (\"50 calls\", 10m), BELAY_STORE where.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) refuse(std::string(error.what()) + "; see --help");
    if (rank() == 0) app.exit(error);
    MPI_Finalize();
    std::exit(0);
  }
}

MPI_Comm world() { return computing; }

void compute_among(MPI_Comm ranks) { MPI_Comm_dup(ranks, &computing); }

int rank() {
  int number = 0;
  MPI_Comm_rank(world(), &number);
  return number;
}

int ranks() {
  int number = 1;
  MPI_Comm_size(world(), &number);
  return number;
}

void stop(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void refuse(const std::string& message) {
  if (rank() == 0) std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, message.c_str());
  MPI_Finalize();
  std::exit(2);
}

void say(const char* format, ...) {
  if (rank() != 0) return;
  va_list values;
  va_start(values, format);
  std::vprintf(format, values);
  va_end(values);
  std::printf("\n");
  std::fflush(stdout);
}

Part part_of(long total, int parts, int part) {
  const long even = total / parts;
  const long extra = total % parts;
  return {part * even + std::min<long>(part, extra), even + (part < extra ? 1 : 0)};
}

double sum_over_ranks(double mine) {
  std::vector<double> all(static_cast<std::size_t>(ranks()));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, world());
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double max_over_ranks(double mine) {
  double largest = 0;
  MPI_Allreduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, world());
  return largest;
}

void restore_or_start(belay::Session& session, const long& step) {
  if (!session.latest()) return say("starting at step %ld", step);
  const auto restored = session.restore();
  if (!restored) stop(restored.error());
  say("restored version %llu at step %ld", static_cast<unsigned long long>(*restored), step);
}

void keep_pace(const Settings& settings) {
  if (settings.pace_ms > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(settings.pace_ms));
}

void print_digest(std::initializer_list<std::span<const std::byte>> state) {
  std::uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&](std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes)
      digest = (digest ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  };
  for (const std::span<const std::byte> bytes : state) add(bytes);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(ranks()));
  MPI_Gather(&digest, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, 0, world());
  digest = 0xcbf29ce484222325;
  add(std::as_bytes(std::span<const std::uint64_t>(all)));
  say("digest %016llx", static_cast<unsigned long long>(digest));
}

void Verdict::demand(const char* what, double value, double bound) {
  const bool holds = std::abs(value) <= bound;  // not if the value is not a number
  failed_ = failed_ || !holds;
  say("check: %-40s %10.3g, at most %.3g: %s", what, value, bound, holds ? "ok" : "FAILED");
}

}  // namespace job
