// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "files/unpack.hpp"
#include "fingerprint/hasher.hpp"
#include "inspect/node_homes.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/store/packed_arrays.hpp"
#include "tools/belay/store/show_nodes.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace belay::tool {
namespace {

using inspect::PartView;
using inspect::RegionChange;
using inspect::StoreView;
using inspect::VersionView;

struct ShowOptions {
  std::string version;
  std::optional<Rank> rank;
};

struct ShownPart {
  const PartView* part = nullptr;
  std::optional<std::size_t> home;  ///< the node that the rank wrote on, where its files tell
  std::vector<ShownRegion> regions;
};

/// Variables of packed sets as what they are. Where the table of these cannot be read, as regions.
Result<std::vector<ShownRegion>> regions_of(const StoreView& view, const VersionView& version,
                                            const PartView& part) {
  BELAY_ASSIGN(auto changes, inspect::region_changes(view, version, part));
  BELAY_ASSIGN(auto encodings, inspect::region_encodings(view, version.key, part));
  std::vector<ShownRegion> regions;
  for (std::size_t i = 0; i < changes.size(); ++i)
    regions.push_back({.change = std::move(changes[i]), .encoding = std::move(encodings[i])});
  if (!files::is_packed(version)) return regions;
  const auto contents = files::read_contents(view, version);
  if (!contents) return regions;
  return join_variables(std::move(regions), files::variables_of(*contents, *part.manifest));
}

/// The parts that were asked for and can be read.
Result<std::vector<ShownPart>> load_parts(const StoreView& view, const VersionView& version,
                                          const std::optional<Rank>& rank) {
  if (rank && version.ranks != 0 && *rank >= version.ranks)
    return fail(Code::not_found, "version {} has no rank {}; it has {}", version.key.version, *rank,
                count_text(version.ranks, "rank"));
  const inspect::NodeHomes homes(view);
  std::vector<ShownPart> shown;
  for (const PartView& part : version.parts) {
    if ((rank && part.rank != *rank) || !part.manifest) continue;
    BELAY_ASSIGN(auto regions, regions_of(view, version, part));
    shown.push_back({&part, homes.node_of(part.rank, version.key.run), std::move(regions)});
  }
  return shown;
}

void say_ledger(const Shell& shell, const Ledger& sum) {
  const auto line = [&](const char* what, std::uint64_t bytes) {
    shell.say(fmt::format("  {:<26}{:>12}{:>10}", what, format_bytes(bytes),
                          percent(bytes, sum.protected_bytes)));
  };
  shell.say(paint("Bytes", Colour::bold, shell.colours()));
  line("protected", sum.protected_bytes);
  line("= untouched", sum.untouched_bytes);
  line("+ unchanged", sum.unchanged_bytes);
  line("+ duplicate here", sum.duplicate_here_bytes);
  line("+ duplicate elsewhere", sum.duplicate_elsewhere_bytes);
  line("+ written", sum.written_bytes);
  line("  of these carried", sum.carried_bytes);
  line("written, encoded", sum.encoded_bytes);
  line("in the segments' files", sum.file_bytes);
}

/// Where the rank wrote; else where its manifest was found, which may be a copy on another node.
std::string place_text(const StoreView& view, const ShownPart& shown) {
  if (shown.home) return printable(view.nodes()[*shown.home].directory);
  return printable(view.nodes()[shown.part->node].directory) + " (has the manifest)";
}

void say_times(const Shell& shell, const StoreView& view, const std::vector<ShownPart>& parts) {
  Table table({">RANK", ">SETTLE", ">DETECT", ">STAGE", ">WAIT", ">BLOCKED", "NODE DIRECTORY"});
  for (const ShownPart& shown : parts) {
    const Ledger& ledger = shown.part->manifest->ledger;
    table.add({std::to_string(shown.part->rank), duration(ledger.settle_ns),
               duration(ledger.detect_ns), duration(ledger.stage_ns), duration(ledger.wait_ns),
               duration(ledger.blocking_ns), place_text(view, shown)});
  }
  for (const std::string& line : table.lines(shell.colours(), 2)) shell.say(line);
}

std::string or_unknown(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "?";
}

double ratio_of(const inspect::RegionEncoding& encoding) {
  return static_cast<double>(encoding.raw_bytes) /
         static_cast<double>(std::max<std::uint64_t>(encoding.encoded_bytes, 1));
}

bool any_encoded(const std::vector<ShownPart>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const ShownPart& shown) {
    return std::any_of(shown.regions.begin(), shown.regions.end(), [](const ShownRegion& region) {
      return region.encoding || region.in_skeleton;
    });
  });
}

/// What is in a skeleton has no blocks that could change or be encoded by themselves.
std::vector<Cell> cells_of(const ShownRegion& shown, Rank rank, bool encoded) {
  const auto& [change, encoding, in_skeleton] = shown;
  std::vector<Cell> cells{in_quotes(change.region.name),
                          std::to_string(rank),
                          type_text(change.region.type),
                          shape_text(change.region.shape),
                          format_bytes(change.region.bytes),
                          in_skeleton ? "-" : or_unknown(change.changed_bytes),
                          in_skeleton ? "-" : format_bytes(change.own_bytes)};
  if (!encoded) return cells;
  cells.push_back(encoding ? fmt::format("{:.2f}", ratio_of(*encoding)) : std::string());
  cells.push_back(in_skeleton ? "in skeleton" : encoding ? encoding->codecs : std::string());
  return cells;
}

void say_regions(const Shell& shell, const std::vector<ShownPart>& parts) {
  const bool encoded = any_encoded(parts);
  std::vector<std::string> head{"REGION", ">RANK",    "TYPE",    "SHAPE",
                                ">SIZE",  ">CHANGED", ">WRITTEN"};
  if (encoded) head.insert(head.end(), {">RATIO", "CODEC"});
  Table table(head);
  for (const ShownPart& shown : parts)
    for (const ShownRegion& region : shown.regions)
      table.add(cells_of(region, shown.part->rank, encoded));
  if (table.empty()) return;
  shell.say(paint("Regions", Colour::bold, shell.colours()));
  for (const std::string& line : table.lines(shell.colours(), 2)) shell.say(line);
}

void say_version(const Shell& shell, const StoreView& view, const VersionView& version,
                 const std::vector<ShownPart>& parts, const ShownNodes& nodes) {
  shell.say(fmt::format("version {} of run {}: {}", version.key.version, version.key.run,
                        paint(name_of(version.state), colour_of(version.state), shell.colours())));
  const Manifest* manifest = version.any_manifest();
  if (manifest == nullptr) return;
  shell.say(fmt::format("  store        {}", to_hex(manifest->origin.store)));
  shell.say(fmt::format("  application  {}", in_quotes(manifest->application)));
  shell.say(fmt::format("  captured     {}", local_time(version.time_ns())));
  shell.say(fmt::format("  ranks        {} of {} have voted", version.parts.size(), version.ranks));
  shell.say(fmt::format("  blocks       of {}, named by {}", format_bytes(manifest->block_bytes),
                        fingerprint::name_of(manifest->hash)));
  shell.say(manifest->parent == VersionKey{}
                ? std::string("  parent       none")
                : fmt::format("  parent       version {} of run {}", manifest->parent.version,
                              manifest->parent.run));
  say_safety(shell, version, nodes);
  say_nodes(shell, view, nodes);
  say_ledger(shell, version.ledger_sum());
  shell.say(paint("Times", Colour::bold, shell.colours()));
  say_times(shell, view, parts);
  say_regions(shell, parts);
}

nlohmann::json region_json(const RegionChange& change) {
  const auto or_null = [](const std::optional<std::uint64_t>& n) {
    return n ? nlohmann::json(*n) : nlohmann::json(nullptr);
  };
  const RegionRecord& region = change.region;
  return {{"name", region.name},
          {"type",
           {{"kind", name_of(region.type.kind)},
            {"bytes", region.type.bytes},
            {"name", region.type.name}}},
          {"shape", std::vector<std::uint64_t>(region.shape.extents().begin(),
                                               region.shape.extents().end())},
          {"bytes", region.bytes},
          {"blocks", change.blocks},
          {"written_blocks", change.own_blocks},
          {"written_bytes", change.own_bytes},
          {"changed_blocks", or_null(change.changed_blocks)},
          {"changed_bytes", or_null(change.changed_bytes)}};
}

nlohmann::json part_json(const StoreView& view, const ShownPart& shown) {
  const Manifest& manifest = *shown.part->manifest;
  nlohmann::json json = {{"rank", shown.part->rank},
                         {"directory", view.nodes()[shown.part->node].directory},
                         {"home", nullptr},
                         {"ledger", json_of(manifest.ledger)}};
  if (shown.home) json["home"] = view.nodes()[*shown.home].directory;
  json["segments"] = nlohmann::json::array();
  json["elsewhere"] = nlohmann::json::array();
  for (const SegmentRef& segment : manifest.segments) {
    if (segment.id.rank == kAnyRank)
      json["elsewhere"].push_back(json_of(segment.id.key));
    else
      json["segments"].push_back({{"file", format::segment_name(segment.id)},
                                  {"bytes", segment.file_bytes},
                                  {"copies", segment.copies}});
  }
  json["regions"] = nlohmann::json::array();
  for (const auto& [change, encoding, in_skeleton] : shown.regions) {
    json["regions"].push_back(region_json(change));
    if (in_skeleton) json["regions"].back()["in_skeleton"] = true;
    if (encoding)
      json["regions"].back()["encoding"] = {{"codecs", encoding->codecs},
                                            {"raw_bytes", encoding->raw_bytes},
                                            {"encoded_bytes", encoding->encoded_bytes}};
  }
  return json;
}

nlohmann::json version_json(const StoreView& view, const VersionView& version,
                            const std::vector<ShownPart>& parts, const ShownNodes& nodes) {
  nlohmann::json json = json_start("belay/show/1", view);
  json.update(json_of(version.key));
  json["state"] = name_of(version.state);
  json["ranks"] = version.ranks;
  json["votes"] = version.parts.size();
  json["time"] = utc_time(version.time_ns());
  json["time_ns"] = version.time_ns();
  json.update(level_json(version.any_manifest()));
  json["parent"] = nullptr;
  if (const Manifest* manifest = version.any_manifest()) {
    if (manifest->parent != VersionKey{}) json["parent"] = json_of(manifest->parent);
    json["block_bytes"] = manifest->block_bytes;
    json["hash"] = fingerprint::name_of(manifest->hash);
  }
  json["ledger"] = json_of(version.ledger_sum());
  json["blocking_max_ns"] = version.blocking_max_ns();
  json.update(nodes_json(view, nodes));
  json["parts"] = nlohmann::json::array();
  for (const ShownPart& shown : parts) json["parts"].push_back(part_json(view, shown));
  json["flaws"] = json_of(version.flaws);
  return json;
}

/// Manifests are read a second time for their blocks: a job may retire the version in between.
Exit show_version(Shell& shell, const ShowOptions& options) {
  const auto show = [&](const StoreView& view, const VersionView& version) -> Result<Exit> {
    BELAY_ASSIGN(const auto parts, load_parts(view, version, options.rank));
    BELAY_ASSIGN(const auto nodes, look_at_nodes(view, version));
    say_version(shell, view, version, parts, nodes);
    say_flaws(shell, version.flaws);
    shell.answer(version_json(view, version, parts, nodes));
    return exit_of(version.flaws);
  };
  return with_version(shell, options.version, show);
}

}  // namespace

void add_show(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<ShowOptions>();
  CLI::App& command = shell.add(
      tool, "show",
      "Show one version: regions, what changed, where bytes and time went, which node has what",
      {"belay show latest", "belay show 12 --rank 0", "belay show 3/12 --json"},
      [&shell, options] { return show_version(shell, *options); });
  command.add_option("VERSION", options->version, kVersionHelp)->required();
  command.add_option("--rank", options->rank, "Only this rank's part")
      ->check(CLI::NonNegativeNumber)
      ->type_name("R");
}

}  // namespace belay::tool
