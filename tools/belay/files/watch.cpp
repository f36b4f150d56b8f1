// SPDX-License-Identifier: Apache-2.0
#include "base/name_match.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "files/watcher.hpp"
#include "os/errno.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/files/pack_words.hpp"
#include "tools/belay/table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <sys/signalfd.h>

#include <csignal>
#include <map>
#include <memory>

namespace belay::tool {
namespace {

struct WatchOptions {
  std::string directory;
  std::string set;
  std::string pattern;
  std::string marker;
  std::string finished;
  std::string settle = "5s";
  std::string match;
  std::uint64_t files = 0;
  std::uint64_t keep = 0;
  bool once = false;
};

const std::map<std::string, files::Finished> kFinished = {
    {"close", files::Finished::close},
    {"rename", files::Finished::rename},
    {"marker", files::Finished::marker},
};

Result<files::WatchRequest> request_of(const WatchOptions& options) {
  files::WatchRequest request;
  request.place.directory = options.directory;
  request.place.leave_out = options.set;
  if (!options.pattern.empty()) {
    BELAY_ASSIGN(request.place.pattern, files::StepPattern::parse(options.pattern));
  }
  const std::string finished = !options.finished.empty() ? options.finished
                               : options.marker.empty()  ? "close"
                                                         : "marker";
  request.place.finished = kFinished.at(finished);
  if ((request.place.finished == files::Finished::marker) == options.marker.empty())
    return fail(Code::invalid_argument, "--finished marker and --marker go together");
  if (!options.marker.empty()) {
    BELAY_ASSIGN(request.place.marker, files::StepPattern::parse(options.marker));
    request.rules.by_marker = !request.place.marker->has_rank();
  }
  const auto settle = parse_time_ns(options.settle);
  if (!settle)
    return fail(Code::invalid_argument, "--settle {}: write it as 10s or 500ms",
                in_quotes(options.settle));
  request.rules.settle_ns = request.place.settle_ns = *settle;
  if (options.files > 0) request.rules.files = options.files;
  request.rules.once = options.once;
  request.pack.set = options.set;
  if (options.keep > 0) request.pack.keep = options.keep;
  if (!options.match.empty()) {
    BELAY_ASSIGN(request.pack.match,
                 within("--match " + in_quotes(options.match), NameMatch::parse(options.match)));
  }
  return request;
}

/// Readable when somebody asks us to end; children inherit that nobody is killed by it.
Result<os::Descriptor> stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0)
    return Unexpected(os::error_of(errno, "block", "signals"));
  os::Descriptor stop(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!stop.valid()) return Unexpected(os::error_of(errno, "wait for", "signals"));
  return stop;
}

Result<Exit> watch(Shell& shell, const WatchOptions& options) {
  BELAY_ASSIGN(auto request, request_of(options));
  BELAY_ASSIGN(const os::Descriptor stop, stop_signals());
  auto versions = nlohmann::json::array();
  const files::WatchListener listener{
      .packed =
          [&](const files::Step& step, const files::PackReport& report, std::uint64_t time_ns) {
            shell.say((step ? fmt::format("step {}: ", *step) : "") + pack_text(report, time_ns));
            std::fflush(stdout);
            versions.push_back(pack_json(report, time_ns));
            versions.back()["step"] = step ? nlohmann::json(*step) : nlohmann::json(nullptr);
          },
      .warning = [&](const std::string& text) { shell.complain(printable(text)); }};
  BELAY_ASSIGN(auto watcher, files::Watcher::make(std::move(request), listener));
  BELAY_TRY(watcher.run(stop.number()));
  shell.answer({{"schema", "belay/watch/1"},
                {"directory", options.directory},
                {"set", options.set},
                {"versions", versions}});
  return Exit::ok;
}

}  // namespace

void add_watch(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<WatchOptions>();
  CLI::App& command = shell.add_without_store(
      tool, "watch", "Pack the files that a program writes, step after step, as they are finished",
      {"belay watch run7 --to restarts --pattern 'restart.{step}.{rank}.h5' --files 32 --keep 2",
       "belay watch out --to steps --pattern 'step{step}/*' --marker 'step{step}/done'",
       "belay watch run7 --to restarts --pattern 'plt{step}.nc' --once"},
      [&shell, options] {
        auto done = within_memory([&] { return watch(shell, *options); });
        return done ? *done : shell.fail(done.error());
      });
  command.add_option("DIR", options->directory, "Where the program writes")->required();
  command.add_option("--to", options->set, "The set: a directory; made if it is not there")
      ->required()
      ->type_name("SET");
  command
      .add_option("--pattern", options->pattern,
                  "Which files: {step} and {rank} are numbers, * is anything but /; files of one "
                  "step become one version (default: all files, as one group)")
      ->type_name("PATTERN");
  command
      .add_option("--files", options->files,
                  "So many files make a step (default: as many as "
                  "the step before had)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command
      .add_option("--marker", options->marker,
                  "A step is complete when this file is there; with {rank}: a file is finished")
      ->type_name("PATTERN");
  command
      .add_option("--finished", options->finished,
                  "A file is finished when its writer has closed it, when it has its name, or when "
                  "its marker is there (default: close, or marker if there is one)")
      ->check(CLI::IsMember({"close", "rename", "marker"}))
      ->type_name("HOW");
  command
      .add_option("--settle", options->settle,
                  "Without --files or --marker, a step is complete when a newer one has begun and "
                  "nothing of it has changed for so long (default: 5s)")
      ->type_name("TIME");
  command.add_option("--keep", options->keep, "How many versions stay (default: all)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->type_name("N");
  command.add_option("--match", options->match, kMatchHelp)->type_name("REGEX=REPLACEMENT");
  command.add_flag("--once", options->once, "Pack what is complete, and end");
}

}  // namespace belay::tool
