// SPDX-License-Identifier: Apache-2.0
// Every command of the tool, in the order in which --help shows them.
#pragma once

#include "tools/belay/shell.hpp"

namespace belay::tool {

void add_list(CLI::App& tool, Shell& shell);
void add_show(CLI::App& tool, Shell& shell);
void add_check(CLI::App& tool, Shell& shell);
void add_diff(CLI::App& tool, Shell& shell);
void add_extract(CLI::App& tool, Shell& shell);
void add_stats(CLI::App& tool, Shell& shell);
void add_prune(CLI::App& tool, Shell& shell);
void add_pack(CLI::App& tool, Shell& shell);
void add_unpack(CLI::App& tool, Shell& shell);
void add_watch(CLI::App& tool, Shell& shell);
void add_bench(CLI::App& tool, Shell& shell);
void add_doctor(CLI::App& tool, Shell& shell);
void add_rehearse(CLI::App& tool, Shell& shell);
void add_version(CLI::App& tool, Shell& shell);

/// Declares them all.
void add_commands(CLI::App& tool, Shell& shell);

}  // namespace belay::tool
