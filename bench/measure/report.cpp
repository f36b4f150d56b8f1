// SPDX-License-Identifier: Apache-2.0
#include "measure/report.hpp"

#include "measure/must.hpp"

#include <fstream>

namespace belay::bench {
namespace {

const char* verdict(const Target& target) { return target.reached() ? "ok" : "miss"; }

}  // namespace

void print_targets(const std::vector<Target>& targets) {
  for (const Target& target : targets)
    fmt::print("TARGET {} {:.3g} {:g} {}\n", target.name, target.value, target.bound,
               verdict(target));
}

nlohmann::json to_json(const std::vector<Target>& targets) {
  nlohmann::json result = nlohmann::json::array();
  for (const Target& target : targets)
    result.push_back({{"name", target.name},
                      {"value", target.value},
                      {"bound", target.bound},
                      {"at_least", target.at_least},
                      {"verdict", verdict(target)}});
  return result;
}

void write_json(const std::filesystem::path& path, const nlohmann::json& document) {
  const std::filesystem::path partial = path.string() + ".tmp";
  std::ofstream file(partial);
  file << document.dump(2) << '\n';
  file.close();
  if (!file) die("cannot write " + partial.string() + "; name a writable file with --json");
  std::filesystem::rename(partial, path);
}

}  // namespace belay::bench
