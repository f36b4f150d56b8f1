// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/commands.hpp"

namespace belay::tool {

void add_commands(CLI::App& tool, Shell& shell) {
  add_list(tool, shell);
  add_show(tool, shell);
  add_check(tool, shell);
  add_diff(tool, shell);
  add_extract(tool, shell);
  add_stats(tool, shell);
  add_prune(tool, shell);
  add_pack(tool, shell);
  add_unpack(tool, shell);
  add_watch(tool, shell);
  add_doctor(tool, shell);
  add_bench(tool, shell);
  add_rehearse(tool, shell);
  add_version(tool, shell);
}

}  // namespace belay::tool
