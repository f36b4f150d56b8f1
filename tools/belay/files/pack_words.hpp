// SPDX-License-Identifier: Apache-2.0
// What pack and watch say of a version that they made.
#pragma once

#include "files/pack.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace belay::tool {

inline constexpr const char* kMatchHelp =
    "Variables of one type whose names this makes equal are compressed together; without it those "
    "of equal names are. $1 is the first group";

/// "version 3: 4 files with 12 variables, 1.0 MiB in 96.0 KiB (10.7 times), 12.1 ms"
std::string pack_text(const files::PackReport& report, std::uint64_t time_ns);
nlohmann::json pack_json(const files::PackReport& report, std::uint64_t time_ns);

}  // namespace belay::tool
