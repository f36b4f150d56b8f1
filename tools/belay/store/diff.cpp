// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "inspect/region_change.hpp"
#include "inspect/region_diff.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <deque>
#include <memory>
#include <optional>

namespace belay::tool {
namespace {

using inspect::Difference;
using inspect::PartReader;
using inspect::PartView;
using inspect::StoreView;
using inspect::VersionView;

struct DiffOptions {
  std::string first;
  std::string second;
  std::optional<Rank> rank;
};

/// A region of one rank; a version that does not have it has no record.
struct DiffRow {
  Rank rank = 0;
  std::string name;
  std::optional<RegionRecord> first;
  std::optional<RegionRecord> second;
  inspect::RegionDiff diff;

  bool same_type() const { return first && second && first->type == second->type; }
  bool equal() const {
    return same_type() && first->bytes == second->bytes && first->shape == second->shape &&
           diff.changed_blocks == 0;
  }
};

std::optional<RegionRecord> copy_of(const RegionRecord* region) {
  return region == nullptr ? std::nullopt : std::optional<RegionRecord>(*region);
}

/// One rank's parts of both versions.
struct Pair {
  Rank rank = 0;
  PartReader first;
  PartReader second;
};

Result<PartReader> open_part(const StoreView& view, const VersionView& version, Rank rank) {
  const PartView* part = version.part(rank);
  if (part == nullptr || !part->manifest)
    return fail(Code::corruption,
                "version {}: the manifest of rank {} is missing or cannot be read; see `belay "
                "check`",
                version.key.version, rank);
  return PartReader::open(view, version, *part, {});
}

/// All files of both versions before the first is read: from then on a job may retire them.
Result<std::deque<Pair>> open_parts(const StoreView& view, const VersionView& a,
                                    const VersionView& b, const std::optional<Rank>& wanted) {
  std::deque<Pair> pairs;
  for (const PartView& part : (a.parts.size() > b.parts.size() ? a : b).parts) {
    if (wanted && part.rank != *wanted) continue;
    BELAY_ASSIGN(auto first, open_part(view, a, part.rank));
    BELAY_ASSIGN(auto second, open_part(view, b, part.rank));
    pairs.push_back({part.rank, std::move(first), std::move(second)});
  }
  return pairs;
}

Result<void> diff_part(Pair& pair, Progress& progress, std::vector<DiffRow>& rows) {
  auto& [rank, first, second] = pair;
  const std::uint64_t total = second.manifest().ledger.protected_bytes;
  std::uint64_t done = 0;
  for (const RegionRecord& region : second.manifest().regions) {
    const RegionRecord* other = inspect::find_region(first.manifest(), region.name);
    DiffRow row{rank, region.name, copy_of(other), region, {}};
    if (other != nullptr) {
      BELAY_ASSIGN(row.diff,
                   inspect::diff_region(first, *other, second, region, [&](std::uint64_t bytes) {
                     progress.update(std::min(done += bytes, total), total);
                   }));
    } else {
      row.diff.blocks = row.diff.changed_blocks = second.manifest().blocks_of(region);
      row.diff.changed_bytes = region.bytes;
    }
    rows.push_back(std::move(row));
  }
  for (const RegionRecord& region : first.manifest().regions)
    if (inspect::find_region(second.manifest(), region.name) == nullptr)
      rows.push_back({rank, region.name, region, {}, {}});
  return {};
}

std::string index_text(std::uint64_t index, const RegionRecord& region) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : region.shape.extents())
    if (extent == 0 || __builtin_mul_overflow(count, extent, &count)) count = 0;
  if (region.shape.dimensions() < 2 || count == 0 || count * region.type.bytes != region.bytes)
    return fmt::format("[{}]", index);
  std::vector<std::uint64_t> place(region.shape.dimensions());
  for (std::size_t i = place.size(); i-- > 0;) {
    place[i] = index % region.shape.extents()[i];
    index /= region.shape.extents()[i];
  }
  return fmt::format("[{}]", fmt::join(place, ", "));
}

std::string largest_text(const Difference& difference) {
  return std::visit([](auto value) { return fmt::format("{:.6g}", static_cast<double>(value)); },
                    difference.largest);
}

std::string remark(const DiffRow& row) {
  if (!row.first) return "new";
  if (!row.second) return "gone";
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!row.same_type())
    add(fmt::format("type {} -> {}", type_text(row.first->type), type_text(row.second->type)));
  if (row.first->bytes != row.second->bytes)
    add(fmt::format("size {} -> {}", format_bytes(row.first->bytes),
                    format_bytes(row.second->bytes)));
  else if (row.first->shape != row.second->shape)
    add(fmt::format("shape {} -> {}", shape_text(row.first->shape), shape_text(row.second->shape)));
  if (row.diff.difference && row.diff.difference->nan > 0)
    add(fmt::format("{} without a distance (NaN)", row.diff.difference->nan));
  return text;
}

void say_rows(const Shell& shell, const std::vector<DiffRow>& rows) {
  Table table(
      {"REGION", ">RANK", ">BLOCKS", ">CHANGED", ">BYTES", ">LARGEST", "AT", ">MEAN", "REMARK"});
  for (const DiffRow& row : rows) {
    const auto& difference = row.diff.difference;
    const bool has_place = difference && difference->largest_at;
    table.add(
        {in_quotes(row.name),
         std::to_string(row.rank),
         std::to_string(row.diff.blocks),
         {std::to_string(row.diff.changed_blocks), row.equal() ? Colour::none : Colour::yellow},
         format_bytes(row.diff.changed_bytes),
         difference ? largest_text(*difference) : "-",
         has_place ? index_text(*difference->largest_at, *row.second) : "-",
         difference ? fmt::format("{:.6g}", difference->mean) : "-",
         remark(row)});
  }
  for (const std::string& line : table.lines(shell.colours())) shell.say(line);
}

/// JSON has no infinity.
nlohmann::json number_json(double value) {
  if (std::isinf(value)) return "inf";
  return value;
}

nlohmann::json row_json(const DiffRow& row) {
  nlohmann::json json = {{"name", row.name},
                         {"rank", row.rank},
                         {"state", !row.first    ? "new"
                                   : !row.second ? "gone"
                                   : row.equal() ? "equal"
                                                 : "changed"},
                         {"blocks", row.diff.blocks},
                         {"changed_blocks", row.diff.changed_blocks},
                         {"changed_bytes", row.diff.changed_bytes}};
  json["bytes"] = {row.first ? nlohmann::json(row.first->bytes) : nullptr,
                   row.second ? nlohmann::json(row.second->bytes) : nullptr};
  json["same_type"] = row.same_type();
  if (!row.diff.difference) return json;
  const Difference& d = *row.diff.difference;
  json["elements"] = d.elements;
  json["differing_elements"] = d.differing;
  json["nan_elements"] = d.nan;
  json["largest"] = std::holds_alternative<double>(d.largest)
                        ? number_json(std::get<double>(d.largest))
                        : nlohmann::json(std::get<std::uint64_t>(d.largest));
  json["largest_at"] = d.largest_at ? nlohmann::json(*d.largest_at) : nlohmann::json(nullptr);
  json["mean"] = number_json(d.mean);
  return json;
}

Result<Exit> diff(Shell& shell, const DiffOptions& options, const StoreView& view) {
  BELAY_ASSIGN(const VersionView* first, find_version(view, options.first));
  BELAY_ASSIGN(const VersionView* second, find_version(view, options.second));
  if (options.rank && *options.rank >= std::max<Rank>(second->ranks, 1))
    return fail(Code::not_found, "version {} has no rank {}; it has {}", second->key.version,
                *options.rank, count_text(second->ranks, "rank"));
  std::vector<DiffRow> rows;
  {
    Progress progress("diff", shell.draws());
    BELAY_ASSIGN(auto pairs, open_parts(view, *first, *second, options.rank));
    for (; !pairs.empty(); pairs.pop_front()) BELAY_TRY(diff_part(pairs.front(), progress, rows));
  }
  say_rows(shell, rows);
  nlohmann::json json = json_start("belay/diff/1", view);
  json["first"] = json_of(first->key);
  json["second"] = json_of(second->key);
  json["regions"] = nlohmann::json::array();
  for (const DiffRow& row : rows) json["regions"].push_back(row_json(row));
  shell.answer(json);
  return Exit::ok;
}

}  // namespace

void add_diff(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<DiffOptions>();
  CLI::App& command = shell.add(
      tool, "diff", "Compare two versions, region by region",
      {"belay diff 11 12", "belay diff 1/3 latest --rank 0 --json"}, [&shell, options] {
        return with_store(shell, [&](const auto& view) { return diff(shell, *options, view); });
      });
  command.add_option("V1", options->first, kVersionHelp)->required();
  command.add_option("V2", options->second, "The same; what changed is counted in its blocks")
      ->required();
  command.add_option("--rank", options->rank, "Only this rank's regions")
      ->check(CLI::NonNegativeNumber)
      ->type_name("R");
}

}  // namespace belay::tool
