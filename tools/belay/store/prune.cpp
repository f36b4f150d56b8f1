// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "inspect/store_locks.hpp"
#include "inspect/store_prune.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace belay::tool {
namespace {

using inspect::PlannedFile;
using inspect::PrunePlan;
using inspect::StoreView;

struct PruneOptions {
  std::uint64_t keep = 0;
  bool dry_run = false;
};

void say_plan(const Shell& shell, const StoreView& view, const PrunePlan& plan, bool dry_run) {
  if (plan.versions.empty()) {
    shell.say("nothing to prune");
    return;
  }
  for (const VersionKey& key : plan.versions)
    shell.say(fmt::format("{} version {}", dry_run ? "would remove" : "removed",
                          version_text(view, key)));
  std::string copies =
      plan.copies.empty() ? "" : " with " + count_text(plan.copies.size(), "copy", "copies");
  if (!plan.shards.empty()) copies += " with " + count_text(plan.shards.size(), "shard");
  if (!plan.bundles.empty()) copies += " and " + count_text(plan.bundles.size(), "bundle");
  shell.say(fmt::format("{} and {}{}, {}", count_text(plan.manifests.size(), "manifest"),
                        count_text(plan.segments.size(), "segment"), copies,
                        format_bytes(plan.bytes())));
}

nlohmann::json plan_json(const StoreView& view, const PrunePlan& plan, bool dry_run) {
  nlohmann::json json = json_start("belay/prune/1", view);
  json["dry_run"] = dry_run;
  json["removed_versions"] = nlohmann::json::array();
  for (const VersionKey& key : plan.versions) json["removed_versions"].push_back(json_of(key));
  json["removed_files"] = nlohmann::json::array();
  for (const auto* files :
       {&plan.manifests, &plan.segments, &plan.copies, &plan.shards, &plan.bundles})
    for (const PlannedFile& file : *files)
      json["removed_files"].push_back({{"directory", view.nodes()[file.node].directory},
                                       {"file", file.name},
                                       {"bytes", file.bytes}});
  json["removed_bytes"] = plan.bytes();
  return json;
}

Result<Exit> prune_store(Shell& shell, const PruneOptions& options) {
  if (options.keep == 0)
    return fail(Code::invalid_argument,
                "--keep must be at least 1; remove the directory itself to "
                "be rid of all versions");
  Log log(LogLevel::warn,
          [&](LogLevel, std::string_view text) { shell.complain(printable(text)); });
  if (options.dry_run) {
    BELAY_ASSIGN(const auto view, open_store(shell));
    BELAY_ASSIGN(const auto plan, inspect::plan_prune(view, options.keep));
    say_plan(shell, view, plan, true);
    shell.answer(plan_json(view, plan, true));
    return Exit::ok;
  }
  BELAY_ASSIGN(const auto locked,
               inspect::lock_store(os::posix_files(), shell.stores(), "belay prune"));
  BELAY_ASSIGN(const auto plan, inspect::plan_prune(locked.view, options.keep));
  BELAY_TRY(inspect::prune(locked.view, plan, log));
  say_plan(shell, locked.view, plan, false);
  shell.answer(plan_json(locked.view, plan, false));
  return Exit::ok;
}

}  // namespace

void add_prune(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<PruneOptions>();
  CLI::App& command = shell.add(
      tool, "prune", "Remove old versions; not while a job uses the store",
      {"belay prune --keep 2 --dry-run", "belay check && belay prune --keep 1"}, [&shell, options] {
        auto done = within_memory([&] { return prune_store(shell, *options); });
        return done ? *done : shell.fail(done.error());
      });
  command
      .add_option("--keep", options->keep,
                  "How many whole versions stay; damaged ones do not count")
      ->required()
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command.add_flag("--dry-run", options->dry_run, "Only say what would be removed; takes no lock");
}

}  // namespace belay::tool
