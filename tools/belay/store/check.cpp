// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "inspect/store_check.hpp"
#include "inspect/store_locks.hpp"
#include "inspect/store_rebuild.hpp"
#include "inspect/store_repair.hpp"
#include "os/host.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store/check_losses.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>

namespace belay::tool {
namespace {

using inspect::CheckReport;
using inspect::RepairReport;
using inspect::StoreView;

void say_report(const Shell& shell, const StoreView& view, const CheckReport& report) {
  for (const auto& version : report.versions)
    shell.say(
        fmt::format("version {}: {}", version_text(view, version.key),
                    paint(name_of(version.state), colour_of(version.state), shell.colours())));
  std::uint64_t bytes = 0;
  for (const auto& leftover : report.leftovers) bytes += leftover.bytes;
  if (!report.leftovers.empty())
    shell.say(fmt::format("{} that no version needs ({}); a job removes {} in time",
                          count_text(report.leftovers.size(), "file"), format_bytes(bytes),
                          report.leftovers.size() == 1 ? "it" : "them"));
  if (!report.replaced.empty())
    shell.say(fmt::format(
        "{} missing; other files have what versions need of {}",
        count_text(report.replaced.size(), "segment or shard is", "segments and shards are"),
        report.replaced.size() == 1 ? "it" : "them"));
  const std::string verdict =
      report.flaws.empty()
          ? paint("no damage", Colour::green, shell.colours())
          : paint(count_text(report.flaws.size(), "flaw"), Colour::red, shell.colours());
  shell.say(fmt::format("{} in {} verified, {}: {}", format_bytes(report.bytes),
                        count_text(report.files, "file"), count_text(report.blocks, "block"),
                        verdict));
}

void say_repair(const Shell& shell, const RepairReport& repair) {
  for (const auto& step : repair.steps)
    shell.say(fmt::format(
        "{}: {} ({})", step.action,
        printable(step.file.empty() ? step.directory : step.directory + "/" + step.file),
        printable(step.reason)));
  for (const std::string& reason : repair.refused) shell.complain("not repaired: " + reason);
}

nlohmann::json report_json(const StoreView& view, const CheckReport& report) {
  nlohmann::json json = json_start("belay/check/1", view);
  json["versions"] = nlohmann::json::array();
  for (const auto& version : report.versions) {
    nlohmann::json one = json_of(version.key);
    one["state"] = name_of(version.state);
    json["versions"].push_back(std::move(one));
  }
  json["flaws"] = json_of(report.flaws);
  json["replaced"] = json_of(report.replaced);
  json["leftovers"] = nlohmann::json::array();
  for (const auto& leftover : report.leftovers)
    json["leftovers"].push_back({{"directory", view.nodes()[leftover.node].directory},
                                 {"file", leftover.file},
                                 {"bytes", leftover.bytes}});
  json["verified"] = {{"files", report.files}, {"bytes", report.bytes}, {"blocks", report.blocks}};
  return json;
}

nlohmann::json repair_json(const RepairReport& repair) {
  nlohmann::json json = {{"steps", nlohmann::json::array()}, {"refused", repair.refused}};
  for (const auto& step : repair.steps)
    json["steps"].push_back({{"action", step.action},
                             {"directory", step.directory},
                             {"file", step.file},
                             {"reason", step.reason}});
  return json;
}

Result<CheckReport> check(const Shell& shell, const StoreView& view) {
  Progress progress("check", shell.draws());
  BELAY_ASSIGN(auto report, inspect::check_store(view, os::usable_processors(),
                                                 [&](std::uint64_t done, std::uint64_t total) {
                                                   progress.update(done, total);
                                                 }));
  if (report.newest_whole() == nullptr && report.versions.size() < view.versions().size())
    return fail(Code::busy, "versions were removed faster than they could be read; try again");
  if (report.flaws.empty() && report.newest_whole() == nullptr && view.has_existed())
    report.flaws.push_back({.directory = view.stores().front(),
                            .reason = "versions have existed here, but none can be read any more"});
  return report;
}

Exit finish(Shell& shell, const StoreView& view, const CheckReport& report,
            const RepairReport* repair) {
  say_flaws(shell, report.flaws);
  say_report(shell, view, report);
  nlohmann::json json = report_json(view, report);
  if (repair != nullptr) json["repair"] = repair_json(*repair);
  shell.answer(json);
  return exit_of(report.flaws);
}

Result<Exit> check_and_repair(Shell& shell) {
  BELAY_ASSIGN(const auto locked,
               inspect::lock_store(os::posix_files(), shell.stores(), "belay check --repair"));
  BELAY_ASSIGN(const auto before, check(shell, locked.view));
  say_flaws(shell, before.flaws);
  BELAY_ASSIGN(const auto rebuilt, inspect::rebuild_files(locked.view, before));
  RepairReport repair = rebuilt.repair;
  // Only what could not be made again may have to go.
  BELAY_ASSIGN(const auto left, open_store(shell));
  BELAY_ASSIGN(const auto damage, repair.steps.empty() ? Result(before) : check(shell, left));
  BELAY_ASSIGN(const auto rest, inspect::repair_store(left, damage));
  repair.steps.insert(repair.steps.end(), rest.steps.begin(), rest.steps.end());
  repair.refused.insert(repair.refused.end(), rest.refused.begin(), rest.refused.end());
  say_repair(shell, repair);
  // What was repaired is proved by looking again, not by having tried.
  BELAY_ASSIGN(const auto view, open_store(shell));
  BELAY_ASSIGN(const auto after, check(shell, view));
  return finish(shell, view, after, &repair);
}

Exit run_check(Shell& shell, bool repair) {
  const auto plainly = [&](const StoreView& view) -> Result<Exit> {
    BELAY_ASSIGN(const auto report, check(shell, view));
    return finish(shell, view, report, nullptr);
  };
  if (!repair) return with_store(shell, plainly);
  auto done = within_memory([&] { return check_and_repair(shell); });
  return done ? *done : shell.fail(done.error());
}

}  // namespace

void add_check(CLI::App& tool, Shell& shell) {
  struct Wanted {
    bool repair = false;
    std::optional<std::uint32_t> losses;
  };
  const auto wanted = std::make_shared<Wanted>();
  CLI::App& command = shell.add(
      tool, "check", "Read and verify everything in a store",
      {"belay check", "belay check --store /scratch/job/belay-store --json",
       "belay check --losses 1", "belay check --repair   # not while a job uses the store"},
      [&shell, wanted] {
        return wanted->losses ? check_losses(shell, *wanted->losses)
                              : run_check(shell, wanted->repair);
      });
  auto* const repair =
      command.add_flag("--repair", wanted->repair,
                       "Make missing and damaged files again where others have their content, "
                       "move damaged versions to quarantine/ and remove leftovers; what a whole "
                       "version needs is never touched");
  command
      .add_option("--losses", wanted->losses,
                  "Instead say which losses of N nodes each version survives, as names and indexes "
                  "tell; blocks are not read")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->excludes(repair);
}

}  // namespace belay::tool
