// SPDX-License-Identifier: Apache-2.0
#include "interference/runs.hpp"

#include "measure/must.hpp"
#include "measure/process.hpp"
#include "measure/rank_job.hpp"

#include <algorithm>
#include <chrono>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

std::uint64_t versions_in(const fs::path& store, const std::string& application) {
  Options options;
  options.store = store;
  options.application = application;
  Session session = must("open", belay::open(std::move(options)));
  const std::vector<VersionInfo> versions = session.versions();
  must("close", session.close());
  return versions.empty() ? 0 : versions.front().version;
}

}  // namespace

std::string Way::name() const {
  if (interval_s == 0) return "first step only";
  return fmt::format("{}, every {:g} s", background, interval_s);
}

std::optional<RunCost> run(const Application& application, const Way& way, long steps,
                           const fs::path& directory) {
  const Workplace workplace(directory);
  const fs::path store = workplace.path() / "store";
  std::vector<std::string> command = mpirun(way.background == "head" ? 2 : 1, application.name);
  command.insert(command.end(), application.arguments.begin(), application.arguments.end());
  command.insert(command.end(), {"--steps", std::to_string(steps)});
  const std::string interval =
      way.interval_s > 0 ? fmt::format("{:.0f}ms", 1000 * way.interval_s) : "1000000000 calls";
  const auto start = std::chrono::steady_clock::now();
  if (!run_program(command,
                   {"BELAY_STORE=" + store.string(), "BELAY_BACKGROUND=" + way.background,
                    "BELAY_INTERVAL=" + interval},
                   workplace.path() / "output"))
    return std::nullopt;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return RunCost{took.count(), versions_in(store, application.name)};
}

std::optional<Pace> find_pace(const Application& application, long steps,
                              const fs::path& directory) {
  std::vector<double> once, twice;
  for (int turn = 0; turn < 3; ++turn) {
    const auto some = run(application, {}, steps, directory);
    const auto more = run(application, {}, 2 * steps, directory);
    if (!some || !more) return std::nullopt;
    once.push_back(some->seconds);
    twice.push_back(more->seconds);
  }
  // The shortest are the least disturbed. If even these make no sense, all of a run counts as
  // steps.
  const double some_s = *std::min_element(once.begin(), once.end());
  const double more_s = *std::min_element(twice.begin(), twice.end());
  const double step_s = (more_s - some_s) / static_cast<double>(steps);
  const double rest_s = some_s - static_cast<double>(steps) * step_s;
  if (step_s <= 0 || rest_s < 0) return Pace{more_s / static_cast<double>(2 * steps), 0};
  return Pace{step_s, rest_s};
}

std::string why_unsupported(const Way& way, const fs::path& directory) {
  const Workplace workplace(directory);
  Options options;
  options.store = workplace.path() / "store";
  options.background = way.background;
  auto opened = belay::open(std::move(options));
  if (!opened && opened.error().code() == Code::unsupported) return opened.error().message();
  if (opened) must("close", opened->close());
  return {};
}

}  // namespace belay::bench
