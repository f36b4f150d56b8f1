// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/commands.hpp"

#include <nlohmann/json.hpp>

namespace belay::tool {

void add_version(CLI::App& tool, Shell& shell) {
  shell.add(tool, "version", "Say which Belay this is", {"belay version --json"}, [&shell] {
    shell.say("belay " BELAY_VERSION);
    shell.answer({{"schema", "belay/version/1"}, {"version", BELAY_VERSION}});
    return Exit::ok;
  });
}

}  // namespace belay::tool
