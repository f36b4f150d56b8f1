// SPDX-License-Identifier: Apache-2.0
// What the main programs of all benchmarks have in common: options, and how they end.
#pragma once

#include "measure/must.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace belay::bench {

/// A benchmark's own arguments are derived from these.
struct CommonArguments {
  explicit CommonArguments(const std::string& name) : json("build/bench/" + name + ".json") {}

  std::filesystem::path directory = "build/bench/work";
  std::filesystem::path json;
  bool quick = false;
  std::vector<std::string> only;  ///< parts; empty: all

  bool wants(const std::string& part) const {
    return only.empty() || std::find(only.begin(), only.end(), part) != only.end();
  }
};

inline void add_common_options(CLI::App& app, CommonArguments& arguments) {
  app.add_option("--dir", arguments.directory, "where stores and files go for the time of the run");
  app.add_option("--json", arguments.json,
                 "the file for rows and targets; figures, if any, go beside it");
  app.add_flag("--quick", arguments.quick, "small sizes, done within a minute");
}

/// The same for a benchmark of several parts.
inline void add_only_option(CLI::App& app, CommonArguments& arguments,
                            const std::vector<std::string>& parts) {
  app.add_option("--only", arguments.only, "only these parts")->check(CLI::IsMember(parts));
}

/// Reads the command line, runs, and says what failed. The exit code.
inline int run_bench(CLI::App& app, int argc, char** argv, const std::function<int()>& run) {
  CLI11_PARSE(app, argc, argv);
  try {
    return run();
  } catch (const std::exception& failure) {
    die(failure.what());
  }
}

}  // namespace belay::bench
