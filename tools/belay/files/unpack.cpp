// SPDX-License-Identifier: Apache-2.0
#include "files/unpack.hpp"

#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "files/set_base.hpp"
#include "os/clock.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/files/pack_words.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <csignal>
#include <memory>

namespace belay::tool {
namespace {

struct UnpackOptions {
  std::string set;
  std::string version = "latest";
  std::string directory = ".";
  bool force = false;
};

nlohmann::json failures_json(const files::UnpackReport& report) {
  auto list = nlohmann::json::array();
  for (const files::UnpackFailure& failure : report.failures)
    list.push_back({{"path", failure.path},
                    {"code", name_of(failure.error.code())},
                    {"reason", failure.error.message()}});
  return list;
}

/// That of the first file that failed; damage counts before all else.
Exit exit_of_report(const files::UnpackReport& report) {
  if (report.failures.empty()) return Exit::ok;
  for (const files::UnpackFailure& failure : report.failures)
    if (exit_of(failure.error.code()) == Exit::damage) return Exit::damage;
  return exit_of(report.failures.front().error.code());
}

Result<Exit> unpack(Shell& shell, const UnpackOptions& options, const inspect::StoreView& view,
                    const inspect::VersionView& version) {
  const std::uint64_t start = os::system_clock().now_ns();
  Result<files::UnpackReport> report = fail(Code::io, "");
  {
    Progress progress("unpack", shell.draws());
    report = files::unpack(view, version, {options.directory, options.force},
                           [&](auto done, auto total) { progress.update(done, total); });
  }
  BELAY_TRY(report);
  for (const files::UnpackFailure& failure : report->failures)
    shell.complain(
        fmt::format("{}: {}", in_quotes(failure.path), printable(failure.error.message())));
  const std::uint64_t time_ns = os::system_clock().now_ns() - start;
  shell.say(
      fmt::format("version {}: {}, {}, {}{}", version_text(view, version.key),
                  count_text(report->files, "file"), format_bytes(report->bytes), duration(time_ns),
                  report->failures.empty()
                      ? ""
                      : fmt::format("; {} failed", count_text(report->failures.size(), "file"))));
  nlohmann::json json = json_start("belay/unpack/1", view);
  json.update(json_of(version.key));
  json["directory"] = options.directory;
  json["files"] = report->files;
  json["bytes"] = report->bytes;
  json["time_ns"] = time_ns;
  json["failures"] = failures_json(*report);
  shell.answer(json);
  return exit_of_report(*report);
}

}  // namespace

void add_unpack(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<UnpackOptions>();
  CLI::App& command = shell.add_without_store(
      tool, "unpack", "Write the files of a packed set, verified byte for byte",
      {"belay unpack restarts --to run7", "belay unpack restarts --version 3 --to old --force"},
      [&shell, options] {
        std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error like a full disk
        if (const auto checked = files::check_set(options->set); !checked)
          return shell.fail(checked.error());
        shell.use_store(options->set);
        return with_version(shell, options->version, [&](const auto& view, const auto& version) {
          return unpack(shell, *options, view, version);
        });
      });
  command.add_option("SET", options->set, "The set: the directory that pack made")->required();
  command
      .add_option("--version", options->version, kVersionHelp + std::string(" (default: latest)"))
      ->type_name("VERSION");
  command.add_option("--to", options->directory, "Where to; made if it is not there (default: .)")
      ->type_name("DIR");
  command.add_flag("--force", options->force, "Replace files that are there");
}

}  // namespace belay::tool
