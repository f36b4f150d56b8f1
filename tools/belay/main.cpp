// SPDX-License-Identifier: Apache-2.0
// belay: looks at stores, checks and trims them, and tells whether a place is fit for one.
#include "base/text.hpp"
#include "tools/belay/commands.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <sys/resource.h>

#include <cstdio>
#include <string_view>
#include <vector>

namespace belay::tool {
namespace {

/// CLI11 says only that a subcommand is required; this says which one was meant.
bool names_no_command(const CLI::App& tool, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  const std::string word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : tool.get_subcommands({})) {
    if (command->get_name() == word) return false;
    names.push_back(command->get_name());
  }
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  fmt::print(stderr, "belay: there is no command {}; did you mean {}? `belay --help` lists all\n",
             in_quotes(word), nearest(word, candidates));
  return true;
}

/// Comparing versions holds all their files open; the usual 1024 are few for a large job.
void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // if it fails, the old limit holds
}

int run(int argc, char** argv) {
  CLI::App tool("Looks at Belay's stores: what is in them, whether it is whole, what it cost.",
                "belay");
  tool.require_subcommand(1);
  tool.set_version_flag("--version", "belay " BELAY_VERSION);
  tool.footer(
      "Exit codes: 0 ok, 1 damage found, 2 usage, 3 not found, 4 busy, 5 I/O, 6 unsupported");
  Shell shell;
  add_commands(tool, shell);
  if (names_no_command(tool, argc, argv)) return static_cast<int>(Exit::usage);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    tool.exit(error);
    return static_cast<int>(asked_for_help ? Exit::ok : Exit::usage);
  }
  return static_cast<int>(shell.exit());
}

}  // namespace
}  // namespace belay::tool

int main(int argc, char** argv) {
  belay::tool::raise_open_files();
  const int exit = belay::tool::run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit;
  std::fputs("belay: not all could be written to standard output\n", stderr);
  return static_cast<int>(belay::tool::Exit::io);
}
