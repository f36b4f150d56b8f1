// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/text.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <nlohmann/json.hpp>

namespace belay::tool {
namespace {

using inspect::StoreView;
using inspect::VersionView;

/// What a version changed: new content, wherever it was found or put.
std::uint64_t changed_bytes(const Ledger& ledger) {
  return ledger.duplicate_here_bytes + ledger.duplicate_elsewhere_bytes + ledger.written_bytes -
         std::min(ledger.carried_bytes, ledger.written_bytes);
}

std::string ranks_text(const VersionView& version) {
  if (version.ranks == 0) return "?";
  if (version.parts.size() >= version.ranks) return std::to_string(version.ranks);
  return fmt::format("{} of {}", version.parts.size(), version.ranks);
}

void say_versions(const Shell& shell, const StoreView& view) {
  if (view.versions().empty()) {
    shell.say("no versions");
    return;
  }
  Table table({">VERSION", ">RUN", "TIME", ">RANKS", ">PROTECTED", ">CHANGED", ">WRITTEN", "LEVEL",
               "STATE"});
  for (const VersionView& version : view.versions()) {
    const Ledger sum = version.ledger_sum();
    const Manifest* manifest = version.any_manifest();
    const bool known = manifest != nullptr;
    const auto bytes = [&](std::uint64_t n) { return known ? format_bytes(n) : "?"; };
    table.add({std::to_string(version.key.version),
               std::to_string(version.key.run),
               known ? local_time(version.time_ns()) : "?",
               ranks_text(version),
               bytes(sum.protected_bytes),
               bytes(changed_bytes(sum)),
               bytes(sum.written_bytes),
               known ? level_text(manifest->level, manifest->global, manifest->dump) : "?",
               {name_of(version.state), colour_of(version.state)}});
  }
  for (const std::string& line : table.lines(shell.colours())) shell.say(line);
}

nlohmann::json versions_json(const StoreView& view) {
  auto list = nlohmann::json::array();
  for (const VersionView& version : view.versions()) {
    nlohmann::json json = json_of(version.key);
    const Ledger sum = version.ledger_sum();
    json["state"] = name_of(version.state);
    json["ranks"] = version.ranks;
    json["votes"] = version.parts.size();
    json["time"] = utc_time(version.time_ns());
    json["time_ns"] = version.time_ns();
    json["protected_bytes"] = sum.protected_bytes;
    json["changed_bytes"] = changed_bytes(sum);
    json["written_bytes"] = sum.written_bytes;
    const Manifest* manifest = version.any_manifest();
    json.update(level_json(manifest));
    if (manifest != nullptr && manifest->parent != VersionKey{})
      json["parent"] = json_of(manifest->parent);
    else
      json["parent"] = nullptr;
    list.push_back(std::move(json));
  }
  return list;
}

Exit list_versions(Shell& shell) {
  auto view = open_store(shell);
  if (!view) return shell.fail(view.error());
  auto flaws = view->all_flaws();
  if (flaws.empty() && view->newest_whole() == nullptr && view->has_existed())
    flaws.push_back({.directory = view->stores().front(),
                     .reason = "versions have existed here, but none can be read any more"});
  say_versions(shell, *view);
  say_flaws(shell, flaws, 20);
  nlohmann::json json = json_start("belay/list/1", *view);
  json["versions"] = versions_json(*view);
  json["flaws"] = json_of(flaws);
  shell.answer(json);
  return exit_of(flaws);
}

}  // namespace

void add_list(CLI::App& tool, Shell& shell) {
  shell.add(tool, "list", "List the versions of a store, newest first",
            {"belay list", "belay list --store /scratch/job/belay-store --json"},
            [&shell] { return list_versions(shell); });
}

}  // namespace belay::tool
