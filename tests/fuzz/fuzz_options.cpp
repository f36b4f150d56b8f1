// SPDX-License-Identifier: Apache-2.0
// The first byte says what the rest is: 't' a TOML file, anything else `NAME=value` lines of the
// environment.
#include "base/settings.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace belay::fuzz {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

Environment parse_lines(std::string_view text, const std::string& prefix) {
  Environment environment;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    environment.emplace_back(prefix + std::string(line.substr(0, equals)),
                             line.substr(std::min(equals + 1, line.size())));
  }
  return environment;
}

/// `block=16384` lines as variables: BELAY_BLOCK. What is unset stays so.
Environment variables_of(const std::string& shared) {
  Environment environment = parse_lines(shared, "BELAY_");
  std::erase_if(environment, [](const auto& variable) { return variable.second.empty(); });
  for (auto& variable : environment)
    for (char& c : variable.first)
      c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return environment;
}

OptionSources sources_of(Environment environment, std::string file) {
  OptionSources sources;
  sources.environment = std::move(environment);
  sources.program = "program";
  sources.read_file = [file = std::move(file)](const std::string&) -> Result<std::string> {
    return file;
  };
  return sources;
}

void check(const OptionSources& sources) {
  const auto resolved = resolve_options(sources);
  if (!resolved) {
    require(!resolved.error().message().empty(), "an error says what is wrong");
    return;
  }
  const Settings& settings = resolved->settings;
  require(settings.block_bytes >= kMinBlockBytes && settings.block_bytes <= kMaxBlockBytes,
          "block sizes are in bounds");
  require(settings.segments >= 1 && settings.segments <= kMaxSegments, "segments are in bounds");
  require(settings.keep >= 1, "at least one version is kept");
  require(check_name("application", settings.application).has_value(), "names are valid");
  const std::string shared = shared_settings(settings);
  const auto again = resolve_options(sources_of(variables_of(shared), ""));
  require(again.has_value(), "what settings say can be said to settings");
  require(shared_settings(again->settings) == shared, "and means the same");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 't')
    check(sources_of({{"BELAY_CONFIG", "belay.toml"}}, std::string(rest)));
  else
    check(sources_of(parse_lines(rest, ""), ""));
  return 0;
}
