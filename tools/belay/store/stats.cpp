// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "inspect/segment_life.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <nlohmann/json.hpp>

namespace belay::tool {
namespace {

using inspect::StoreView;
using inspect::VersionView;

struct Totals {
  std::size_t whole = 0;
  std::uint64_t protected_bytes = 0;  ///< of all whole versions
  std::size_t manifests = 0, segments = 0, copies = 0, shards = 0, others = 0;
  std::uint64_t manifest_bytes = 0, segment_bytes = 0, copy_bytes = 0, shard_bytes = 0,
                other_bytes = 0;
  std::uint64_t live_bytes = 0, retained_bytes = 0;

  std::uint64_t file_bytes() const {
    return manifest_bytes + segment_bytes + copy_bytes + shard_bytes + other_bytes;
  }
};

Result<Totals> totals_of(const StoreView& view) {
  Totals totals;
  for (const VersionView& version : view.versions()) {
    if (version.state != inspect::VersionState::whole) continue;
    ++totals.whole;
    totals.protected_bytes += version.ledger_sum().protected_bytes;
  }
  for (const auto& node : view.nodes()) {
    for (const auto& file : node.files) {
      const bool finished = file.parsed && !file.parsed->temporary;
      const bool manifest = finished && file.parsed->kind == format::NameKind::manifest;
      const bool segment = finished && file.parsed->kind == format::NameKind::segment;
      const bool copy = finished && file.parsed->kind == format::NameKind::copy;
      const bool shard = finished && file.parsed->kind == format::NameKind::shard;
      ++(manifest  ? totals.manifests
         : segment ? totals.segments
         : copy    ? totals.copies
         : shard   ? totals.shards
                   : totals.others);
      (manifest  ? totals.manifest_bytes
       : segment ? totals.segment_bytes
       : copy    ? totals.copy_bytes
       : shard   ? totals.shard_bytes
                 : totals.other_bytes) += file.bytes;
    }
  }
  BELAY_ASSIGN(const auto lives, inspect::segment_lives(view));
  for (const auto& [id, life] : lives) {
    totals.live_bytes += life.live_bytes;
    totals.retained_bytes += life.retained_bytes;
  }
  return totals;
}

void say_totals(const Shell& shell, const StoreView& view, const Totals& totals) {
  const auto line = [&](const std::string& what, const std::string& value) {
    shell.say(fmt::format("{:<28}{:>14}", what, value));
  };
  line("versions", fmt::format("{}", view.versions().size()));
  line("  whole", fmt::format("{}", totals.whole));
  line("in files", format_bytes(totals.file_bytes()));
  line("  " + count_text(totals.segments, "segment"), format_bytes(totals.segment_bytes));
  if (totals.copies > 0)
    line("  " + count_text(totals.copies, "copy", "copies"), format_bytes(totals.copy_bytes));
  if (totals.shards > 0)
    line("  " + count_text(totals.shards, "shard"), format_bytes(totals.shard_bytes));
  line("  " + count_text(totals.manifests, "manifest"), format_bytes(totals.manifest_bytes));
  line("  " + count_text(totals.others, "other"), format_bytes(totals.other_bytes));
  line("live (the newest version)", format_bytes(totals.live_bytes));
  line("retained (any version)", format_bytes(totals.retained_bytes));
  line("dead",
       format_bytes(totals.segment_bytes - std::min(totals.segment_bytes, totals.live_bytes)));
  line("protected by whole versions", format_bytes(totals.protected_bytes));
  line("  saved",
       percent(totals.protected_bytes - std::min(totals.protected_bytes, totals.file_bytes()),
               totals.protected_bytes));
}

void say_history(const Shell& shell, const StoreView& view) {
  Table table({">VERSION", ">PROTECTED", ">UNTOUCHED", ">UNCHANGED", ">DUPLICATE", ">WRITTEN",
               ">CARRIED", ">BLOCKED"});
  for (const VersionView& version : view.versions()) {
    if (version.any_manifest() == nullptr) continue;
    const Ledger sum = version.ledger_sum();
    table.add({version_text(view, version.key), format_bytes(sum.protected_bytes),
               format_bytes(sum.untouched_bytes), format_bytes(sum.unchanged_bytes),
               format_bytes(sum.duplicate_here_bytes + sum.duplicate_elsewhere_bytes),
               format_bytes(sum.written_bytes), format_bytes(sum.carried_bytes),
               duration(version.blocking_max_ns())});
  }
  if (table.empty()) return;
  shell.say("");
  for (const std::string& text : table.lines(shell.colours())) shell.say(text);
}

nlohmann::json stats_json(const StoreView& view, const Totals& totals) {
  nlohmann::json json = json_start("belay/stats/1", view);
  json["versions"] = {{"known", view.versions().size()}, {"whole", totals.whole}};
  json["files"] = {{"segments", {{"count", totals.segments}, {"bytes", totals.segment_bytes}}},
                   {"copies", {{"count", totals.copies}, {"bytes", totals.copy_bytes}}},
                   {"shards", {{"count", totals.shards}, {"bytes", totals.shard_bytes}}},
                   {"manifests", {{"count", totals.manifests}, {"bytes", totals.manifest_bytes}}},
                   {"others", {{"count", totals.others}, {"bytes", totals.other_bytes}}},
                   {"bytes", totals.file_bytes()}};
  json["live_bytes"] = totals.live_bytes;
  json["retained_bytes"] = totals.retained_bytes;
  json["dead_bytes"] = totals.segment_bytes - std::min(totals.segment_bytes, totals.live_bytes);
  json["protected_bytes"] = totals.protected_bytes;
  json["history"] = nlohmann::json::array();
  for (const VersionView& version : view.versions()) {
    nlohmann::json one = json_of(version.key);
    one["state"] = name_of(version.state);
    one["ledger"] = json_of(version.ledger_sum());
    one["blocking_max_ns"] = version.blocking_max_ns();
    json["history"].push_back(std::move(one));
  }
  json["flaws"] = json_of(view.all_flaws());
  return json;
}

Result<Exit> say_stats(Shell& shell, const StoreView& view) {
  BELAY_ASSIGN(const Totals totals, totals_of(view));
  say_totals(shell, view, totals);
  say_history(shell, view);
  say_flaws(shell, view.all_flaws(), 20);
  shell.answer(stats_json(view, totals));
  return exit_of(view.all_flaws());
}

}  // namespace

void add_stats(CLI::App& tool, Shell& shell) {
  shell.add(tool, "stats", "Sum up a store: bytes in files, what is live, what was saved",
            {"belay stats", "belay stats --json"}, [&shell] {
              return with_store(shell, [&](const auto& view) { return say_stats(shell, view); });
            });
}

}  // namespace belay::tool
