// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/extract_hdf5.hpp"

#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_output.hpp"
#include "inspect/part_reader.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store/packed_arrays.hpp"

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
constexpr std::uint64_t kMostKeptBytes = 1024;

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

/// What one dataset is made of.
struct PackedItem {
  Hdf5Entry entry;
  std::function<Result<void>(const files::TakeBytes&)> read;
};

Hdf5Entry entry_of(const std::string& name, const files::ArrayType& array,
                   const std::vector<files::Field>& fields = {}) {
  return {group_of(0), name, array.type, array.shape, array.bytes().value_or(0), fields};
}

/// Opening a variable again costs far more than to keep the bytes of one that is small.
Result<PackedItem> item_of(PackedArrays& arrays, const files::PackedVariable& variable,
                           files::VariableReader& reader) {
  PackedItem item{entry_of(variable.name, reader.array(), reader.fields()),
                  [&arrays, &variable](const files::TakeBytes& take) -> Result<void> {
                    BELAY_ASSIGN(auto again, arrays.reader(variable));
                    return again.read(take);
                  }};
  if (!variable.regions.empty() || item.entry.bytes > kMostKeptBytes) return item;
  std::vector<std::byte> kept;
  BELAY_TRY(reader.read([&](std::span<const std::byte> bytes) -> Result<void> {
    kept.insert(kept.end(), bytes.begin(), bytes.end());
    return {};
  }));
  item.read = [kept = std::move(kept)](const files::TakeBytes& take) { return take(kept); };
  return item;
}

/// As an array, or where that cannot be had, its bytes as they lay in its file; nothing of one that
/// has none of its own there.
Result<std::optional<PackedItem>> item_of(const Shell& shell, PackedArrays& arrays,
                                          const files::PackedVariable& variable) {
  auto reader = arrays.reader(variable);
  if (reader) {
    BELAY_ASSIGN(auto item, item_of(arrays, variable, *reader));
    return std::optional(std::move(item));
  }
  if (reader.error().code() != Code::unsupported) return Unexpected(reader.error());
  const bool has_bytes = !variable.regions.empty();
  shell.complain(fmt::format("{} is {}: {}", in_quotes(variable.name),
                             has_bytes ? "written as plain bytes" : "left out",
                             printable(reader.error().message())));
  if (!has_bytes) return std::optional<PackedItem>();
  const files::ArrayType stored{ElementType(), Shape(arrays.stored_bytes(variable))};
  return std::optional(PackedItem{entry_of(variable.name, stored),
                                  [&arrays, &variable](const files::TakeBytes& take) {
                                    return arrays.read_stored(variable, take);
                                  }});
}

Result<std::vector<PackedItem>> items_of(const Shell& shell, PackedArrays& arrays,
                                         const Hdf5Extract& options) {
  std::vector<PackedItem> items;
  if (options.region.empty()) {
    for (const files::PackedVariable& variable : arrays.variables()) {
      BELAY_ASSIGN(auto item, item_of(shell, arrays, variable));
      if (item) items.push_back(*std::move(item));
    }
    return items;
  }
  BELAY_ASSIGN(auto found, arrays.find(options.region));
  if (!found) return items;
  const auto reader = std::make_shared<files::VariableReader>(*std::move(found));
  items.push_back({entry_of(options.region, reader->array(), reader->fields()),
                   [reader](const files::TakeBytes& take) { return reader->read(take); }});
  return items;
}

Result<std::uint64_t> fill(const Shell& shell, const std::vector<PackedItem>& items,
                           Hdf5Output& output) {
  std::uint64_t total = 0;
  std::uint64_t done = 0;
  for (const PackedItem& item : items) total += item.entry.bytes;
  Progress progress("extract", shell.draws());
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::uint64_t at = 0;
    const auto take = [&](std::span<const std::byte> bytes) {
      const auto written = output.write(output.entries()[i], at, bytes);
      at += bytes.size();
      progress.update(done += bytes.size(), total);
      return written;
    };
    BELAY_TRY(items[i].read(take));
  }
  return total;
}

nlohmann::json entries_json(const Hdf5Output& output) {
  auto list = nlohmann::json::array();
  for (const Hdf5Entry& entry : output.entries())
    list.push_back({{"region", entry.name}, {"dataset", entry.dataset}, {"bytes", entry.bytes}});
  return list;
}

Result<Exit> tell(Shell& shell, const Hdf5Extract& options, const StoreView& view,
                  const VersionView& version, const Hdf5Output& output, std::uint64_t bytes) {
  shell.say(fmt::format("{}: {}, {}", printable(options.file),
                        count_text(output.entries().size(), "dataset"), format_bytes(bytes)));
  nlohmann::json json = json_start("belay/extract/1", view);
  json.update(json_of(version.key));
  json["bytes"] = bytes;
  json["file"] = options.file;
  json["format"] = "hdf5";
  json["datasets"] = entries_json(output);
  shell.answer(json);
  return Exit::ok;
}

}  // namespace

Result<Exit> extract_hdf5(Shell& shell, const Hdf5Extract& options, const StoreView& view,
                          const VersionView& version) {
  const auto arrays = PackedArrays::open(view, version);  // a damaged table hides no region
  if (arrays && *arrays && options.rank.value_or(0) == 0) {
    BELAY_ASSIGN(const auto items, items_of(shell, **arrays, options));
    std::vector<Hdf5Entry> entries;
    for (const PackedItem& item : items) entries.push_back(item.entry);
    if (!items.empty()) {
      BELAY_ASSIGN(auto output,
                   Hdf5Output::create(options.file, options.force, std::move(entries)));
      BELAY_ASSIGN(const std::uint64_t bytes, fill(shell, items, output));
      BELAY_TRY(output.finish());
      return tell(shell, options, view, version, output, bytes);
    }
  }
  BELAY_ASSIGN(auto entries, entries_of(version, options));
  BELAY_ASSIGN(auto output, Hdf5Output::create(options.file, options.force, std::move(entries)));
  BELAY_ASSIGN(const std::uint64_t bytes, fill(shell, view, version, options, output));
  BELAY_TRY(output.finish());
  return tell(shell, options, view, version, output, bytes);
}

}  // namespace belay::tool
