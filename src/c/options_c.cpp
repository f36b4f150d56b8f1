// SPDX-License-Identifier: Apache-2.0
#include "base/option_table.hpp"
#include "base/text.hpp"
#include "c/handle.hpp"

#include <algorithm>

using belay::LogLevel;
using belay::c::refuse;

namespace {

static_assert(static_cast<int>(LogLevel::error) == BELAY_LOG_ERROR);
static_assert(static_cast<int>(LogLevel::warn) == BELAY_LOG_WARN);
static_assert(static_cast<int>(LogLevel::info) == BELAY_LOG_INFO);
static_assert(static_cast<int>(LogLevel::debug) == BELAY_LOG_DEBUG);

belay::Result<belay::Setting belay::Options::*> member_named(std::string_view name) {
  const auto table = belay::option_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& option) { return option.name == name; });
  if (found != table.end()) return found->code;
  std::vector<std::string_view> names;
  for (const auto& option : table) names.push_back(option.name);
  return belay::fail(belay::Code::invalid_argument,
                     "belay_options_set: {} is not an option; did you mean {}?",
                     belay::in_quotes(name), belay::nearest(name, names));
}

}  // namespace

belay_options* belay_options_new(void) { return new (std::nothrow) belay_options; }

void belay_options_free(belay_options* options) { delete options; }

int belay_options_set(belay_options* options, const char* name, const char* value) {
  if (options == nullptr) return refuse(nullptr, "belay_options_set", "no options are given");
  if (name == nullptr) return refuse(nullptr, "belay_options_set", "the name is a null pointer");
  return belay::c::run(nullptr, [&]() -> belay::Result<void> {
    BELAY_ASSIGN(const auto member, member_named(name));
    options->options.*member = value == nullptr ? belay::Setting() : belay::Setting(value);
    return {};
  });
}

int belay_options_on_log(belay_options* options, belay_log_function log, void* user) {
  if (options == nullptr) return refuse(nullptr, "belay_options_on_log", "no options are given");
  return belay::c::run(nullptr, [&]() -> belay::Result<void> {
    options->options.on_log = nullptr;
    if (log != nullptr)
      options->options.on_log = [log, user](LogLevel level, std::string_view text) {
        log(static_cast<int>(level), std::string(text).c_str(), user);
      };
    return {};
  });
}
