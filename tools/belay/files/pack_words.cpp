// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/files/pack_words.hpp"

#include "base/settings.hpp"
#include "tools/belay/store/store_arguments.hpp"
#include "tools/belay/table.hpp"

#include <nlohmann/json.hpp>

namespace belay::tool {

std::string pack_text(const files::PackReport& report, std::uint64_t time_ns) {
  const std::uint64_t stored = report.ledger.file_bytes;
  const double ratio =
      stored == 0 ? 0 : static_cast<double>(report.raw_bytes) / static_cast<double>(stored);
  return fmt::format("version {}: {} with {}, {} in {} ({:.2f} times), {}", report.version,
                     count_text(report.files, "file"), count_text(report.variables, "variable"),
                     format_bytes(report.raw_bytes), format_bytes(stored), ratio,
                     duration(time_ns));
}

nlohmann::json pack_json(const files::PackReport& report, std::uint64_t time_ns) {
  nlohmann::json json = {{"version", report.version},
                         {"files", report.files},
                         {"variables", report.variables},
                         {"raw_bytes", report.raw_bytes},
                         {"cut_bytes", report.cut_bytes},
                         {"stored_bytes", report.ledger.file_bytes},
                         {"time_ns", time_ns},
                         {"ledger", json_of(report.ledger)}};
  json["uncut"] = nlohmann::json::array();
  for (const files::UncutFile& file : report.uncut)
    json["uncut"].push_back({{"path", file.path}, {"reason", file.reason}});
  return json;
}

}  // namespace belay::tool
