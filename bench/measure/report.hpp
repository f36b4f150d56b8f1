// SPDX-License-Identifier: Apache-2.0
// Figures to reach, as every benchmark ends.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace belay::bench {

struct Target {
  std::string name;
  double value = 0;
  double bound = 0;
  bool at_least = false;  ///< the bound, else at most

  bool reached() const { return at_least ? value >= bound : value <= bound; }
};

/// `TARGET <name> <value> <bound> ok|miss` for each.
void print_targets(const std::vector<Target>& targets);
nlohmann::json to_json(const std::vector<Target>& targets);

/// Writes it beside `path` first, so that a reader never sees half a file.
void write_json(const std::filesystem::path& path, const nlohmann::json& document);

}  // namespace belay::bench
