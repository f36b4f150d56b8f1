// SPDX-License-Identifier: Apache-2.0
// belay rehearse: is everything protected that a restart needs?
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "os/clock.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/machine/place.hpp"
#include "tools/belay/printable.hpp"
#include "tools/belay/rehearse/rehearsal.hpp"
#include "tools/belay/rehearse/scratch_directory.hpp"
#include "tools/belay/status_line.hpp"
#include "tools/belay/table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace belay::tool {
namespace {

namespace fs = std::filesystem;
using Kind = Difference::Kind;
using End = RehearsalRun::End;

struct RehearseOptions {
  std::vector<std::string> command;
  std::string scratch;
  std::uint64_t every = 1;
  std::uint64_t kill_after = 3;
  std::uint64_t compare = 5;
  std::string timeout = "2m";
  bool baseline = false;
  bool keep_scratch = false;
};

Exit exit_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same:
      return Exit::ok;
    case Verdict::differs:
    case Verdict::not_restored:
    case Verdict::restart_failed:
      return Exit::damage;
    case Verdict::nondeterministic:
    case Verdict::unequal_points:
      return Exit::unsupported;
    case Verdict::no_versions:
    case Verdict::other_store:
    case Verdict::program_failed:
      break;
  }
  return Exit::not_found;
}

/// Where the store would lie, so that the rehearsal writes to the same file system.
std::string parent_of(const std::string& directory) {
  const fs::path store = fs::absolute(directory).lexically_normal();
  const fs::path named = store.has_filename() ? store : store.parent_path();
  return named.parent_path().string();
}

Result<RehearsalPlan> plan_of(const RehearseOptions& options, const ScratchDirectory& scratch) {
  const auto timeout = parse_time_ns(options.timeout);
  if (!timeout || *timeout == 0)
    return fail(Code::invalid_argument,
                "--timeout {}: must be a time above zero, such as 30s or 5m",
                in_quotes(options.timeout));
  return RehearsalPlan{.command = options.command,
                       .scratch = scratch.path(),
                       .every = options.every,
                       .kill_after = options.kill_after,
                       .compare = options.compare,
                       .timeout_ns = *timeout,
                       .baseline = options.baseline,
                       .seed = os::system_random().next()};
}

std::string joined(const std::vector<std::string>& words, const char* between = ", ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// The last lines that a program printed, safe for a terminal.
std::vector<std::string> tail_of(const std::string& path) {
  constexpr std::streamoff kBytes = 4096;
  constexpr std::size_t kLines = 15;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  file.seekg(std::max<std::streamoff>(size - kBytes, 0));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(printable(line));
  if (lines.size() > kLines) lines.erase(lines.begin(), lines.end() - kLines);
  return lines;
}

std::string blocks_of(const Difference& difference) {
  const std::string range =
      difference.first_block == difference.last_block
          ? fmt::format("block {}", difference.first_block)
          : fmt::format("blocks {}-{}", difference.first_block, difference.last_block);
  const std::uint64_t in_range = difference.last_block - difference.first_block + 1;
  if (difference.differing > in_range)
    return fmt::format("{} of {} blocks, the first {}", difference.differing, difference.blocks,
                       range);
  return fmt::format("{} of {}", range, difference.blocks);
}

std::string details_of(const Difference& difference) {
  switch (difference.kind) {
    case Kind::content:
      return blocks_of(difference);
    case Kind::size:
      return fmt::format("{} bytes undisturbed, {} after the restart", difference.first_bytes,
                         difference.second_bytes);
    case Kind::type:
      return "another type or shape";
    case Kind::only_in_first:
      return "protected only in the undisturbed run";
    case Kind::only_in_second:
      break;
  }
  return "protected only after the restart";
}

std::string line_of(const Difference& difference, const Rehearsal& found) {
  const MatchedVersions at = found.compared[difference.place];
  std::string line =
      fmt::format("region `{}` differs first at version {} (", difference.region, at.undisturbed);
  if (at.restarted != at.undisturbed) line += fmt::format("{} after the restart; ", at.restarted);
  line += fmt::format("rank {}, {}", difference.rank, details_of(difference));
  if (difference.ranks > 1) line += fmt::format("; {} ranks in all", difference.ranks);
  line += ")";
  if (std::find(found.unsteady.begin(), found.unsteady.end(), difference.region) !=
      found.unsteady.end())
    line += ", but between undisturbed runs as well";
  return line;
}

const char* name_of(End end) {
  switch (end) {
    case End::killed:
      return "killed";
    case End::timeout:
      return "timeout";
    case End::other_store:
      return "other_store";
    case End::ended:
      break;
  }
  return "ended";
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::content:
      return "content";
    case Kind::size:
      return "size";
    case Kind::type:
      return "type";
    case Kind::only_in_first:
      return "only_undisturbed";
    case Kind::only_in_second:
      break;
  }
  return "only_restarted";
}

std::string line_of(const RehearsalRun& run) {
  std::string how = "stopped when there were enough";
  if (run.name == "killed") how = "killed";
  if (run.end == End::timeout) how = "stopped, as the time was up";
  if (run.end == End::other_store) how = "stopped";
  if (run.end == End::ended) how = "ended by itself with " + describe_status(run.status);
  return fmt::format("  {:<12} {} in {:.1f} s, {}", run.name + ":",
                     count_text(run.versions, "version"), run.seconds, how);
}

void say_compared(const Shell& shell, const Rehearsal& found) {
  if (found.restored) shell.say(fmt::format("  restored version {}", *found.restored));
  if (found.compared.empty()) return;
  const MatchedVersions first = found.compared.front();
  const MatchedVersions last = found.compared.back();
  shell.say(
      fmt::format("  compared {}: {}-{} of the undisturbed run with {}-{} after the "
                  "restart",
                  count_text(found.compared.size(), "version"), first.undisturbed, last.undisturbed,
                  first.restarted, last.restarted));
}

void say_findings(const Shell& shell, const Rehearsal& found,
                  const std::vector<std::string>& tail) {
  for (const RehearsalRun& run : found.runs) shell.say(line_of(run));
  say_compared(shell, found);
  for (const std::string& note : found.notes) shell.say("  " + note);
  for (const Difference& difference : found.comparison.differences)
    shell.say(line_of(difference, found));
  if (!found.comparison.differences.empty() && !found.comparison.agreeing.empty())
    shell.say("regions that agree: " + joined(found.comparison.agreeing));
  if (found.verdict == Verdict::same) shell.say("regions: " + joined(found.comparison.agreeing));
  if (!tail.empty()) shell.say("the last that it printed:");
  for (const std::string& line : tail) shell.say("  | " + line);
  shell.say(fmt::format("{}: {}", tool::name_of(found.verdict), found.explanation));
}

nlohmann::json to_json(const Difference& difference, const Rehearsal& found) {
  const MatchedVersions at = found.compared[difference.place];
  nlohmann::json json = {{"region", difference.region},
                         {"kind", name_of(difference.kind)},
                         {"undisturbed_version", at.undisturbed},
                         {"restarted_version", at.restarted},
                         {"rank", difference.rank},
                         {"ranks", difference.ranks}};
  if (difference.kind == Kind::content)
    json.update({{"first_block", difference.first_block},
                 {"last_block", difference.last_block},
                 {"differing_blocks", difference.differing},
                 {"blocks", difference.blocks}});
  if (difference.kind == Kind::size)
    json.update({{"undisturbed_bytes", difference.first_bytes},
                 {"restarted_bytes", difference.second_bytes}});
  return json;
}

nlohmann::json to_json(const RehearsalRun& run) {
  nlohmann::json json = {{"name", run.name},
                         {"end", name_of(run.end)},
                         {"versions", run.versions},
                         {"seconds", run.seconds},
                         {"status", nullptr}};
  if (run.end == End::ended) json["status"] = describe_status(run.status);
  return json;
}

nlohmann::json to_json(const Rehearsal& found, const RehearseOptions& options,
                       const std::vector<std::string>& tail) {
  auto runs = nlohmann::json::array();
  for (const RehearsalRun& run : found.runs) runs.push_back(to_json(run));
  auto compared = nlohmann::json::array();
  for (const MatchedVersions& versions : found.compared)
    compared.push_back({{"undisturbed", versions.undisturbed}, {"restarted", versions.restarted}});
  auto differences = nlohmann::json::array();
  for (const Difference& difference : found.comparison.differences)
    differences.push_back(to_json(difference, found));
  nlohmann::json json = {{"schema", "belay/rehearse/1"},
                         {"command", options.command},
                         {"verdict", tool::name_of(found.verdict)},
                         {"explanation", found.explanation},
                         {"runs", runs},
                         {"restored", nullptr},
                         {"compared", compared},
                         {"differences", differences},
                         {"agreeing", found.comparison.agreeing},
                         {"unsteady", found.unsteady},
                         {"notes", found.notes},
                         {"log", tail}};
  if (found.restored) json["restored"] = *found.restored;
  return json;
}

Exit run_rehearsal(Shell& shell, const RehearseOptions& options) {
  // Destroyed last: a signal that came takes its effect when nothing is left behind.
  const Interrupts interrupts;
  const auto store = only_one(shell.stores());
  if (!store) return shell.fail(store.error());
  auto scratch = ScratchDirectory::make(
      options.scratch.empty() ? parent_of(*store) : options.scratch, "belay-rehearsal-");
  if (!scratch)
    return shell.fail({scratch.error().code(),
                       scratch.error().message() + "; name another directory with --scratch"});
  if (options.keep_scratch) (*scratch)->keep();
  const auto plan = plan_of(options, **scratch);
  if (!plan) return shell.fail(plan.error());
  StatusLine status(shell.draws());
  const auto found = rehearse(*plan, os::posix_files(), interrupts,
                              [&](const std::string& doing) { status.show(doing); });
  status.clear();
  if (interrupts.pending()) {
    std::fprintf(stderr, "belay: interrupted; ending the program and removing %s\n",
                 plan->scratch.c_str());
    return Exit::busy;
  }
  if (!found) return shell.fail(found.error());
  const auto tail = found->failed_log ? tail_of(*found->failed_log) : std::vector<std::string>{};
  // Before anything is printed: a reader that goes away must not leave it there.
  scratch->reset();
  shell.say("rehearsal of " + printable(joined(options.command, " ")));
  say_findings(shell, *found, tail);
  if (options.keep_scratch) shell.say("stores and logs are in " + plan->scratch);
  auto json = to_json(*found, options, tail);
  json["scratch"] = options.keep_scratch ? nlohmann::json(plan->scratch) : nlohmann::json();
  shell.answer(json);
  return exit_of(found->verdict);
}

}  // namespace

void add_rehearse(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<RehearseOptions>();
  CLI::App& command = shell.add(
      tool, "rehearse",
      "Run a program killed and restarted, and undisturbed, and tell whether it computes the same",
      {"belay rehearse -- ./solver --steps 100",
       "belay rehearse --kill-after 5 --compare 20 -- mpirun -n 4 ./heat2d --rows 256",
       "belay rehearse --scratch /local/scratch --keep-scratch --json -- ./solver", "",
       "The program runs two or three times in this directory, as if you had started it: what it",
       "writes besides its checkpoints it writes each time. Its checkpoints go to scratch stores.",
       "Exit codes: 0 same, 1 differs or does not restart, 3 no versions to compare, 6 not",
       "deterministic."},
      [&shell, options] { return run_rehearsal(shell, *options); });
  command.add_option("--kill-after", options->kill_after, "Kill it when so many versions exist")
      ->type_name("V")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100000}))
      ->capture_default_str();
  command.add_option("--compare", options->compare, "Compare so many versions after the restart")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100000}))
      ->capture_default_str();
  command.add_option("--every", options->every, "Take a version at every N-th call of due()")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->capture_default_str();
  command.add_option("--timeout", options->timeout, "Stop a run after this time")
      ->type_name("TIME")
      ->capture_default_str();
  command
      .add_option("--scratch", options->scratch,
                  "Directory for the scratch stores (default: beside the store)")
      ->type_name("DIR");
  command.add_flag("--keep-scratch", options->keep_scratch, "Leave scratch stores and logs there");
  command.add_flag("--baseline", options->baseline,
                   "Run it undisturbed twice in any case, not only when something differs");
  command.add_option("command", options->command, "The program with its arguments, after --")
      ->required()
      ->type_name("COMMAND");
}

}  // namespace belay::tool
