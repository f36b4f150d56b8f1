// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "inspect/store_check.hpp"
#include "os/host.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store_arguments.hpp"

#include <memory>

namespace belay::tool {
namespace {

using inspect::CheckReport;
using inspect::StoreView;

void say_report(const Shell& shell, const StoreView& view, const CheckReport& report) {
  for (const auto& version : report.versions)
    shell.say(
        fmt::format("version {}: {}", version_text(view, version.key),
                    paint(name_of(version.state), colour_of(version.state), shell.colours())));
  std::uint64_t bytes = 0;
  for (const auto& leftover : report.leftovers) bytes += leftover.bytes;
  if (!report.leftovers.empty())
    shell.say(fmt::format("{} files that no version needs ({}); a job removes them in time",
                          report.leftovers.size(), format_bytes(bytes)));
  shell.say(fmt::format("{} in {} files verified, {} blocks: {}", format_bytes(report.bytes),
                        report.files, report.blocks,
                        report.flaws.empty() ? paint("no damage", Colour::green, shell.colours())
                                             : paint(fmt::format("{} flaws", report.flaws.size()),
                                                     Colour::red, shell.colours())));
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
  json["leftovers"] = nlohmann::json::array();
  for (const auto& leftover : report.leftovers)
    json["leftovers"].push_back({{"directory", view.nodes()[leftover.node].directory},
                                 {"file", leftover.file},
                                 {"bytes", leftover.bytes}});
  json["verified"] = {{"files", report.files}, {"bytes", report.bytes}, {"blocks", report.blocks}};
  return json;
}

Exit check_store(Shell& shell) {
  auto view = open_store(shell);
  if (!view) return shell.fail(view.error());
  auto report = [&] {
    Progress progress("check", shell.draws());
    return inspect::check_store(
        *view, os::usable_processors(),
        [&](std::uint64_t done, std::uint64_t total) { progress.update(done, total); });
  }();
  if (!report) return shell.fail(report.error());
  if (report->flaws.empty() && report->newest_whole() == nullptr && view->has_existed())
    report->flaws.push_back(
        {.directory = view->stores().front(),
         .reason = "versions have existed here, but none can be read any more"});
  say_flaws(shell, report->flaws);
  say_report(shell, *view, *report);
  shell.answer(report_json(*view, *report));
  return exit_of(report->flaws);
}

}  // namespace

void add_check(CLI::App& tool, Shell& shell) {
  shell.add(tool, "check", "Read and verify everything in a store",
            {"belay check", "belay check --store /scratch/job/belay-store --json"},
            [&shell] { return check_store(shell); });
}

}  // namespace belay::tool
