// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/extract_hdf5.hpp"

#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_output.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/region_change.hpp"
#include "tools/belay/progress.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace belay::tool {
namespace {

using files::Hdf5Entry;
using files::Hdf5Output;
using inspect::PartView;
using inspect::StoreView;
using inspect::VersionView;

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

std::string group_of(Rank rank) { return fmt::format("rank-{}", rank); }

bool wanted(const PartView& part, const RegionRecord& region, const Hdf5Extract& options) {
  return (!options.rank || part.rank == *options.rank) &&
         (options.region.empty() || region.name == options.region);
}

Result<std::vector<Hdf5Entry>> entries_of(const VersionView& version, const Hdf5Extract& options) {
  std::vector<Hdf5Entry> entries;
  for (const PartView& part : version.parts) {
    if (options.rank && part.rank != *options.rank) continue;
    if (!part.manifest)
      return fail(Code::corruption, "the manifest of rank {} cannot be read; see `belay check`",
                  part.rank);
    for (const RegionRecord& region : part.manifest->regions)
      if (wanted(part, region, options))
        entries.push_back(
            {group_of(part.rank), region.name, region.type, region.shape, region.bytes});
  }
  if (entries.empty())
    return fail(Code::not_found, "version {} has no such region; `belay show {}` lists all",
                version.key.version, version.key.version);
  return entries;
}

Result<void> copy_region(inspect::PartReader& reader, const RegionRecord& region,
                         const Hdf5Entry& entry, Hdf5Output& output) {
  std::vector<std::byte> piece(std::min(region.bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < region.bytes;) {
    const auto bytes =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), region.bytes - at));
    BELAY_TRY(reader.read(region, at, bytes));
    BELAY_TRY(output.write(entry, at, bytes));
    at += bytes.size();
  }
  return {};
}

Result<std::uint64_t> fill(Shell& shell, const StoreView& view, const VersionView& version,
                           const Hdf5Extract& options, Hdf5Output& output) {
  std::uint64_t total = 0;
  std::uint64_t done = 0;
  for (const Hdf5Entry& entry : output.entries()) total += entry.bytes;
  Progress progress("extract", shell.draws());
  auto entry = output.entries().begin();
  for (const PartView& part : version.parts) {
    if (options.rank && part.rank != *options.rank) continue;
    BELAY_ASSIGN(auto reader, inspect::PartReader::open(view, version, part, options.region));
    for (const RegionRecord& region : reader.manifest().regions) {
      if (!wanted(part, region, options)) continue;
      BELAY_TRY(copy_region(reader, region, *entry, output));
      progress.update(done += entry->bytes, total);
      ++entry;
    }
  }
  return total;
}

nlohmann::json entries_json(const Hdf5Output& output) {
  auto list = nlohmann::json::array();
  for (const Hdf5Entry& entry : output.entries())
    list.push_back({{"region", entry.name}, {"dataset", entry.dataset}, {"bytes", entry.bytes}});
  return list;
}

}  // namespace

Result<Exit> extract_hdf5(Shell& shell, const Hdf5Extract& options, const StoreView& view,
                          const VersionView& version) {
  BELAY_ASSIGN(auto entries, entries_of(version, options));
  BELAY_ASSIGN(auto output, Hdf5Output::create(options.file, options.force, std::move(entries)));
  BELAY_ASSIGN(const std::uint64_t bytes, fill(shell, view, version, options, output));
  BELAY_TRY(output.finish());
  shell.say(fmt::format("{}: {} datasets, {}", printable(options.file), output.entries().size(),
                        format_bytes(bytes)));
  nlohmann::json json = json_start("belay/extract/1", view);
  json.update(json_of(version.key));
  json["bytes"] = bytes;
  json["file"] = options.file;
  json["format"] = "hdf5";
  json["datasets"] = entries_json(output);
  shell.answer(json);
  return Exit::ok;
}

}  // namespace belay::tool
