// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include "base/option_table.hpp"
#include "base/text.hpp"
#include "base/try.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <array>

namespace belay {
namespace {

constexpr std::string_view kPrefix = "BELAY_";
constexpr std::string_view kConfig = "BELAY_CONFIG";
/// Variables of the prefix that are no options: where the file is, and two that tests use.
constexpr std::array kNoOptions = {kConfig, std::string_view("BELAY_MISTAKE"),
                                   std::string_view("BELAY_FAULT")};

struct Value {
  std::optional<std::string> text;  ///< unset: a TOML value that no text can stand for
  std::string shown;
  std::string source;
};

/// By place in option_table(); later sources replace what earlier ones put there.
using Values = std::vector<std::optional<Value>>;

Value text_value(std::string text, std::string source) {
  auto shown = in_quotes(text);
  return {std::move(text), std::move(shown), std::move(source)};
}

std::string variable_of(const Option& option) {
  std::string variable(kPrefix);
  for (const char c : option.name)
    variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return variable;
}

/// The option's place in the table, or its size.
template <class Matches>
std::size_t place_of(const Matches& matches) {
  const auto table = option_table();
  return static_cast<std::size_t>(std::find_if(table.begin(), table.end(), matches) -
                                  table.begin());
}

std::string_view nearest_option(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Option& option : option_table()) names.push_back(option.name);
  return nearest(name, names);
}

std::string place_in_file(const std::string& path, const toml::source_position& position) {
  return fmt::format("{}:{}:{}", path, position.line, position.column);
}

/// A table of strings as `key=value,...`; unset if it is anything else.
std::optional<std::string> table_text(const toml::node& node) {
  const auto* const table = node.as_table();
  if (table == nullptr || table->empty()) return {};
  // In the order of the file: of rules the first counts.
  std::vector<std::pair<toml::source_position, std::string>> pieces;
  for (const auto& [key, value] : *table) {
    const auto* const text = value.as_string();
    if (text == nullptr || key.str().find(',') != key.str().npos) return {};
    pieces.emplace_back(key.source().begin, fmt::format("{}={}", key.str(), text->get()));
  }
  std::sort(pieces.begin(), pieces.end());
  std::string joined;
  for (const auto& [position, piece] : pieces) joined += (joined.empty() ? "" : ",") + piece;
  return joined;
}

Value toml_value(const toml::node& node, bool takes_table, std::string source) {
  if (auto text = takes_table ? table_text(node) : std::nullopt)
    return text_value(*std::move(text), std::move(source));
  if (const auto* text = node.as_string()) return text_value(text->get(), std::move(source));
  if (const auto* number = node.as_integer())
    return text_value(std::to_string(number->get()), std::move(source));
  if (const auto* number = node.as_floating_point())
    return text_value(fmt::format("{}", number->get()), std::move(source));
  if (const auto* truth = node.as_boolean())
    return text_value(truth->get() ? "true" : "false", std::move(source));
  const char* kind = node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or time";
  return {{}, kind, std::move(source)};
}

Result<void> read_toml(const std::string& path, const std::string& contents, Values& values,
                       std::vector<std::string>& warnings) {
  toml::table table;
  try {
    table = toml::parse(contents, path);
  } catch (const toml::parse_error& error) {
    return fail(Code::invalid_argument, "{}: {}; correct the file or unset {}",
                place_in_file(path, error.source().begin), error.description(), kConfig);
  }
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    const auto place = place_of([&](const Option& option) { return option.name == name; });
    if (place < values.size())
      values[place] = toml_value(node, option_table()[place].takes_table,
                                 place_in_file(path, node.source().begin));
    else
      warnings.push_back(fmt::format("{} ({}) is not an option; did you mean {}?", in_quotes(name),
                                     place_in_file(path, key.source().begin),
                                     nearest_option(name)));
  }
  return {};
}

Result<void> read_config(const OptionSources& sources, Values& values,
                         std::vector<std::string>& warnings) {
  const auto& environment = sources.environment;
  const auto config = std::find_if(environment.begin(), environment.end(),
                                   [](const auto& variable) { return variable.first == kConfig; });
  if (config == environment.end()) return {};
  const std::string& path = config->second;
  if (path.empty())
    return fail(Code::invalid_argument, "{} is empty: name a TOML file or unset it", kConfig);
  BELAY_ASSIGN(const std::string contents, within(std::string(kConfig), sources.read_file(path)));
  return read_toml(path, contents, values, warnings);
}

void read_environment(const OptionSources& sources, Values& values,
                      std::vector<std::string>& warnings) {
  for (const auto& variable : sources.environment) {
    const std::string& name = variable.first;
    if (!name.starts_with(kPrefix) ||
        std::find(kNoOptions.begin(), kNoOptions.end(), name) != kNoOptions.end())
      continue;
    const auto place = place_of([&](const Option& option) { return variable_of(option) == name; });
    if (place < values.size()) {
      values[place] = text_value(variable.second, name);
      continue;
    }
    const auto match = nearest_option(std::string_view(name).substr(kPrefix.size()));
    const auto& option =
        option_table()[place_of([&](const Option& candidate) { return candidate.name == match; })];
    const auto shown = name_flaw(name) ? in_quotes(name) : name;
    warnings.push_back(
        fmt::format("{} is not an option; did you mean {}?", shown, variable_of(option)));
  }
}

void read_code(const OptionSources& sources, Values& values) {
  const auto table = option_table();
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Setting& setting = sources.code.*(table[i].code);
    if (setting.is_set())
      values[i] = text_value(setting.text(), fmt::format("Options::{}", table[i].name));
  }
}

std::string describe(const Option& option, const Value& value) {
  return fmt::format("{} = {} ({})", option.name, value.shown, value.source);
}

Result<void> parse_value(const Option& option, const Value& value, Settings& settings) {
  if (!value.text) return fail(Code::invalid_argument, "must be a string or a number");
  if (value.text->empty())
    return fail(Code::invalid_argument, "is empty; give it a value or unset it");
  return option.parse(*value.text, settings);
}

/// Two ways to say the same thing would leave open which one counts.
Result<void> check_failure_domain(const Values& values) {
  const auto table = option_table();
  const auto node = place_of([](const Option& option) { return option.code == &Options::node; });
  const auto ranks =
      place_of([](const Option& option) { return option.code == &Options::ranks_per_node; });
  if (values[node] && values[ranks])
    return fail(Code::invalid_argument,
                "{} and {}: both say what shares a failure domain; unset one of them",
                describe(table[node], *values[node]), describe(table[ranks], *values[ranks]));
  return {};
}

Result<void> check_levels(ResolvedOptions& resolved) {
  const Settings& settings = resolved.settings;
  const LevelPlan plan = settings.level_plan();
  if (plan.global && settings.global.empty())
    return fail(Code::invalid_argument,
                "levels = {}: there is no global tier; set `global` to a directory on the parallel "
                "file system",
                in_quotes(to_text(plan)));
  if (!plan.global && !settings.global.empty())
    resolved.warnings.push_back(
        "global is set, but no version goes there: name it in `levels`, such as local:1,global:16");
  return {};
}

}  // namespace

Result<ResolvedOptions> resolve_options(const OptionSources& sources) {
  const auto table = option_table();
  Values values(table.size());
  ResolvedOptions resolved;
  const auto application =
      place_of([](const Option& option) { return option.code == &Options::application; });
  values[application] = text_value(sources.program, "the program's name");
  BELAY_TRY(read_config(sources, values, resolved.warnings));
  read_environment(sources, values, resolved.warnings);
  read_code(sources, values);
  for (std::size_t i = 0; i < table.size(); ++i)
    if (values[i])
      BELAY_TRY(within(describe(table[i], *values[i]),
                       parse_value(table[i], *values[i], resolved.settings)));
  BELAY_TRY(check_failure_domain(values));
  BELAY_TRY(check_levels(resolved));
  return resolved;
}

bool Settings::survives_losses() const { return level_plan().levels().back().losses() > 0; }

std::string shared_settings(const Settings& settings) {
  std::string lines;
  for (const Option& option : option_table())
    if (option.shared) lines += fmt::format("{}={}\n", option.name, option.shared(settings));
  return lines;
}

}  // namespace belay
