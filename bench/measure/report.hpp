// SPDX-License-Identifier: Apache-2.0
// Rows of findings, and figures to reach, as every benchmark ends.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
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

/// What `key` takes on in the rows, in their order.
template <class T>
std::vector<T> values_of(const nlohmann::json& rows, const char* key) {
  std::vector<T> values;
  for (const nlohmann::json& row : rows)
    if (const T value = row.at(key).get<T>();
        std::find(values.begin(), values.end(), value) == values.end())
      values.push_back(value);
  return values;
}

}  // namespace belay::bench
