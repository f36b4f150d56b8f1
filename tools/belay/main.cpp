// SPDX-License-Identifier: Apache-2.0
// belay: looks at stores, checks and trims them, and tells whether a place is fit for one.
#include "tools/belay/commands.hpp"

int main(int argc, char** argv) {
  using namespace belay::tool;
  CLI::App tool("Looks at Belay's stores: what is in them, whether it is whole, what it cost.",
                "belay");
  tool.require_subcommand(1);
  tool.footer(
      "Exit codes: 0 ok, 1 damage found, 2 usage, 3 not found, 4 busy, 5 I/O, 6 unsupported");
  Shell shell;
  add_commands(tool, shell);
  try {
    tool.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    tool.exit(error);
    return static_cast<int>(asked_for_help ? Exit::ok : Exit::usage);
  }
  return static_cast<int>(shell.exit());
}
