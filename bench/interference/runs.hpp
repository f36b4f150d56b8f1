// SPDX-License-Identifier: Apache-2.0
// Whole runs of an example on one rank, with versions every so often.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace belay::bench {

struct Application {
  std::string name;
  std::vector<std::string> arguments;
};

/// Who writes the versions, and how often one is due. Without an interval there is only that of the
/// first step, which the examples always take.
struct Way {
  std::string background = "thread";
  double interval_s = 0;

  std::string name() const;
};

struct RunCost {
  double seconds = 0;
  std::uint64_t versions = 0;
};
/// None if it failed. `directory` is for the time of the call. With `head` there are two processes,
/// else there is one.
std::optional<RunCost> run(const Application& application, const Way& way, long steps,
                           const std::filesystem::path& directory);

/// What the steps of a run take, and what comes before and after them.
struct Pace {
  double step_s = 0;
  double rest_s = 0;
};
/// From a short run and one of twice as many steps; none if one failed.
std::optional<Pace> find_pace(const Application& application, long steps,
                              const std::filesystem::path& directory);

/// Why this library cannot do it, or empty.
std::string why_unsupported(const Way& way, const std::filesystem::path& directory);

}  // namespace belay::bench
