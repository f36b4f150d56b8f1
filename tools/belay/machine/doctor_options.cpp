// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "os/errno.hpp"
#include "os/host.hpp"
#include "tools/belay/machine/doctor.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>

namespace belay::tool {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

Result<std::string> read_text(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return Unexpected(os::error_of(errno, "open", path));
  if (!S_ISREG(status.st_mode)) return Unexpected(os::not_regular("open", path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Unexpected(os::error_of(errno, "open", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<ResolvedOptions> resolve(const Variables& variables) {
  return resolve_options(
      {.code = {}, .environment = variables, .program = "program", .read_file = read_text});
}

/// One source by itself, so that a mistake in one does not hide those in others.
bool look_at(const Variables& variables, Findings& findings) {
  const auto resolved = resolve(variables);
  if (!resolved) {
    findings.push_back({"options", Health::fail, resolved.error().message(),
                        "correct or unset it: open() refuses it"});
    return false;
  }
  for (const std::string& warning : resolved->warnings)
    findings.push_back({"options", Health::warn, warning, "correct or unset it: it has no effect"});
  return true;
}

}  // namespace

Findings examine_options() {
  const Variables variables = os::environment("BELAY_");
  Findings findings;
  bool good = true;
  for (const auto& variable : variables) good = look_at({variable}, findings) && good;
  Findings again;
  if (good && !look_at(variables, again)) findings.push_back(again.back());
  if (!findings.empty()) return findings;
  std::string found = variables.empty() ? "no BELAY_ variable is set: the defaults hold" : "";
  for (const auto& variable : variables) found += (found.empty() ? "" : ", ") + variable.first;
  return {{"options", Health::ok, found}};
}

}  // namespace belay::tool
