// SPDX-License-Identifier: Apache-2.0
// Every option in one table; nothing else in Belay knows their names. To add an option, add a
// member to Options, one to Settings, and a row.
#pragma once

#include <belay/options.hpp>
#include <belay/result.hpp>

#include "base/settings.hpp"

#include <span>
#include <string>
#include <string_view>

namespace belay {

struct Option {
  std::string_view name;  ///< the TOML key; in the environment BELAY_ and the name in capitals
  Setting Options::*code;
  /// Puts the value into the settings. Errors say what would be right.
  Result<void> (*parse)(std::string_view text, Settings& settings);
  /// The setting as text, if it must be the same on all ranks; else null.
  std::string (*shared)(const Settings& settings) = nullptr;
  /// In a TOML file it may be a table of strings as well: `key=value,...` as text.
  bool takes_table = false;
};

std::span<const Option> option_table();

}  // namespace belay
