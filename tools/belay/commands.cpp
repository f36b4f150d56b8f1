// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/commands.hpp"

namespace belay::tool {

void add_commands(CLI::App& tool, Shell& shell) {
  add_doctor(tool, shell);
  add_bench(tool, shell);
  add_rehearse(tool, shell);
  add_version(tool, shell);
}

}  // namespace belay::tool
