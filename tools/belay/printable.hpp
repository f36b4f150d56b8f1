// SPDX-License-Identifier: Apache-2.0
// Lines that other programs printed, made safe for a terminal.
#pragma once

#include <string>

namespace belay::tool {

/// Control characters, those of eight bits included, become spaces.
std::string printable(std::string line);

}  // namespace belay::tool
