// SPDX-License-Identifier: Apache-2.0
#include "files/pack_job.hpp"

#include "base/name_match.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"
#include "os/clock.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/files/pack_words.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/table.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>

namespace belay::tool {
namespace {

struct PackOptions {
  std::vector<std::string> paths;
  std::string set;
  std::string base;
  std::string relative_to;
  std::string bandwidth;
  std::string match;
  std::uint64_t keep = 0;
};

Result<files::PackRequest> request_of(const Shell& shell, const PackOptions& options) {
  files::PackRequest request;
  request.set = options.set;
  request.base = options.base;
  if (options.keep > 0) request.keep = options.keep;
  if (!options.bandwidth.empty()) {
    std::string_view number = options.bandwidth;
    if (number.ends_with("/s")) number.remove_suffix(2);
    if (parse_bytes(number).value_or(0) == 0)
      return fail(Code::invalid_argument, "--bandwidth {}: write it as 200MB/s",
                  in_quotes(options.bandwidth));
    request.bandwidth = std::string(number);
  }
  if (!options.match.empty()) {
    BELAY_ASSIGN(request.match,
                 within("--match " + in_quotes(options.match), NameMatch::parse(options.match)));
  }
  BELAY_ASSIGN(auto found, files::find_sources(options.paths, options.relative_to, options.set));
  for (const std::string& path : found.skipped)
    shell.complain(fmt::format("{} is not a regular file and is left out", in_quotes(path)));
  request.sources = std::move(found.sources);
  return request;
}

Result<Exit> pack(Shell& shell, const PackOptions& options) {
  const std::uint64_t start = os::system_clock().now_ns();
  BELAY_ASSIGN(const auto request, request_of(shell, options));
  Result<files::PackReport> packed = fail(Code::io, "");
  {
    Progress progress("pack", shell.draws());
    packed = files::pack_in_child(
        request, {.progress = [&](auto done, auto total) { progress.update(done, total); },
                  .warning = [&](const std::string& text) { shell.complain(printable(text)); }});
  }
  BELAY_TRY(packed);
  const std::uint64_t time_ns = os::system_clock().now_ns() - start;
  for (const files::UncutFile& file : packed->uncut)
    shell.complain(fmt::format("{} is packed as plain bytes: {}", in_quotes(file.path),
                               printable(file.reason)));
  shell.say(printable(options.set) + ": " + pack_text(*packed, time_ns));
  nlohmann::json json = pack_json(*packed, time_ns);
  json["schema"] = "belay/pack/1";
  json["set"] = options.set;
  shell.answer(json);
  return Exit::ok;
}

}  // namespace

void add_pack(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<PackOptions>();
  CLI::App& command = shell.add_without_store(
      tool, "pack", "Pack files, byte for byte, into a set: variables of HDF5 and netCDF by type",
      {"belay pack restart.*.h5 -o restarts", "belay pack run7/ -o /archive/run7 --keep 3",
       "belay pack step20/ -o monday --base sunday --match '_[0-9]+$='"},
      [&shell, options] {
        auto done = within_memory([&] { return pack(shell, *options); });
        return done ? *done : shell.fail(done.error());
      });
  command.add_option("FILES", options->paths, "Files, and directories with all that is in them")
      ->required();
  command.add_option("-o,--output", options->set, "The set: a directory; a new version is added")
      ->required()
      ->type_name("SET");
  command.add_option("--base", options->base, "Start a new set from this one, with its versions")
      ->type_name("SET");
  command.add_option("--keep", options->keep, "How many versions stay (default: all)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1000000}))
      ->type_name("N");
  command
      .add_option("--relative-to", options->relative_to,
                  "Paths in the set start here (default: the deepest directory with all files)")
      ->type_name("DIR");
  command
      .add_option("--bandwidth", options->bandwidth,
                  "Of the place of the set, to choose how hard to compress")
      ->type_name("BYTES/s");
  command.add_option("--match", options->match, kMatchHelp)->type_name("REGEX=REPLACEMENT");
}

}  // namespace belay::tool
