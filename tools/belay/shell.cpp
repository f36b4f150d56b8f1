// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/shell.hpp"

#include "tools/belay/table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace belay::tool {

Exit exit_of(Code code) {
  switch (code) {
    case Code::not_found:
      return Exit::not_found;
    case Code::corruption:
      return Exit::damage;
    case Code::invalid_argument:
      return Exit::usage;
    case Code::busy:
    case Code::peer_lost:
      return Exit::busy;
    case Code::unsupported:
      return Exit::unsupported;
    case Code::io:
    case Code::no_space:
      break;
  }
  return Exit::io;
}

CLI::App& Shell::add(CLI::App& tool, const std::string& name, const std::string& summary,
                     const std::vector<std::string>& examples, std::function<Exit()> run) {
  CLI::App& command = *tool.add_subcommand(name, summary);
  command
      .add_option("--store", stores_,
                  "Directory of the store; may be given more than once (default: BELAY_STORE, then "
                  "./belay-store)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  return complete(command, examples, std::move(run));
}

CLI::App& Shell::add_without_store(CLI::App& tool, const std::string& name,
                                   const std::string& summary,
                                   const std::vector<std::string>& examples,
                                   std::function<Exit()> run) {
  return complete(*tool.add_subcommand(name, summary), examples, std::move(run));
}

CLI::App& Shell::complete(CLI::App& command, const std::vector<std::string>& examples,
                          std::function<Exit()> run) {
  command.add_flag("--json", json_, "Print one JSON document instead of text");
  command.add_option("--color", color_, "When to use colours")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  std::string footer = "Examples:";
  for (const std::string& example : examples) footer += "\n  " + example;
  command.footer(footer);
  command.callback([this, run = std::move(run)] { exit_ = run(); });
  return command;
}

std::vector<std::string> Shell::stores() const {
  std::vector<std::string> distinct;
  for (const std::string& store : stores_) {
    // One directory under two names would be taken for two, and lock itself out.
    const bool again = std::any_of(distinct.begin(), distinct.end(), [&](const std::string& other) {
      std::error_code none;
      return other == store || std::filesystem::equivalent(other, store, none);
    });
    if (!again) distinct.push_back(store);
  }
  if (!distinct.empty()) return distinct;
  const char* set = std::getenv("BELAY_STORE");
  return {set != nullptr && *set != '\0' ? set : "./belay-store"};
}

void Shell::say(const std::string& line) const {
  if (!json_) std::printf("%s\n", line.c_str());
}

void Shell::answer(const nlohmann::json& document) {
  if (!json_) return;
  // Names of files need not be UTF-8; what is not becomes U+FFFD.
  std::printf("%s\n",
              document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

void Shell::complain(const std::string& message) const {
  std::fflush(stdout);
  std::fprintf(stderr, "belay: %s\n", message.c_str());
}

Exit Shell::fail(const Error& error) {
  complain(printable(error.message()));
  answer({{"schema", "belay/error/1"},
          {"error", {{"code", name_of(error.code())}, {"message", error.message()}}}});
  return exit_of(error.code());
}

bool Shell::draws() const { return !json_ && isatty(STDERR_FILENO) == 1; }

bool Shell::colours() const {
  if (color_ != "auto") return color_ == "always";
  const char* none = std::getenv("NO_COLOR");
  return (none == nullptr || *none == '\0') && isatty(STDOUT_FILENO) == 1;
}

}  // namespace belay::tool
