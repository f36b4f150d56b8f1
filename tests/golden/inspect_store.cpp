// SPDX-License-Identifier: Apache-2.0
// Reads stores as the tool does, without a lock and without writing, and prints what read_store.py
// prints about the versions that are whole: one line of JSON for each store.
//
//   inspect_store STORE...
#include "base/try.hpp"
#include "golden/region_json.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/store_check.hpp"

namespace belay::golden {
namespace {

using inspect::StoreView;
using inspect::VersionView;

Result<Json> describe_version(const StoreView& view, const VersionView& version) {
  Json json = {{"run", version.key.run},
               {"version", version.key.version},
               {"parent", version.any_manifest()->parent.version}};
  for (const inspect::PartView& part : version.parts) {
    BELAY_ASSIGN(auto reader, inspect::PartReader::open(view, version, part, {}));
    Json regions = Json::array();
    for (const RegionRecord& region : reader.manifest().regions) {
      std::vector<std::byte> content(region.bytes);
      BELAY_TRY(reader.read(region, 0, content));
      regions.push_back(describe(region, content));
    }
    json["ranks"][std::to_string(part.rank)] = {
        {"time_ns", reader.manifest().time_ns},
        {"written_bytes", reader.manifest().ledger.written_bytes},
        {"regions", std::move(regions)}};
  }
  return json;
}

Result<Json> describe_store(const std::string& store) {
  BELAY_ASSIGN(const StoreView view, StoreView::open(os::posix_files(), {store}));
  BELAY_ASSIGN(const auto report,
               inspect::check_store(view, 1, [](std::uint64_t, std::uint64_t) {}));
  Json versions = Json::array();
  for (auto version = report.versions.rbegin(); version != report.versions.rend(); ++version) {
    if (version->state != inspect::VersionState::whole) continue;
    BELAY_ASSIGN(Json one, describe_version(view, *view.find(version->key)));
    versions.push_back(std::move(one));
  }
  return Json{{"versions", std::move(versions)}, {"flaws", report.flaws.size()}};
}

}  // namespace
}  // namespace belay::golden

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const auto found = belay::golden::describe_store(arguments[i]);
    if (!found) {
      std::fprintf(stderr, "inspect_store: %s: %s\n", arguments[i],
                   found.error().message().c_str());
      return 1;
    }
    std::printf("%s\n", found->dump().c_str());
  }
}
