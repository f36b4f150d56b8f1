// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/text.hpp"
#include "base/try.hpp"
#include "inspect/part_reader.hpp"
#include "tools/belay/commands.hpp"
#include "tools/belay/progress.hpp"
#include "tools/belay/store/extract_hdf5.hpp"
#include "tools/belay/store/npy.hpp"
#include "tools/belay/store/output_file.hpp"
#include "tools/belay/store/packed_arrays.hpp"
#include "tools/belay/store/store_arguments.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <memory>
#include <optional>

namespace belay::tool {
namespace {

using inspect::PartView;
using inspect::StoreView;
using inspect::VersionView;

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;

struct ExtractOptions {
  std::string version;
  std::string region;
  std::optional<Rank> rank;
  std::string output;
  std::string hdf5;
  bool all = false;
  bool raw = false;
  bool force = false;
};

/// Regions of one rank, for messages.
std::string names_of(const Manifest& manifest) {
  std::string names;
  for (const RegionRecord& region : manifest.regions) {
    if (names.size() > 200) return names + ", ...";
    names += (names.empty() ? "" : ", ") + in_quotes(region.name);
  }
  return names.empty() ? "none" : names;
}

/// The rank that was asked for, or the only one that has the region.
Result<const PartView*> choose_part(const VersionView& version, const ExtractOptions& options) {
  const PartView* chosen = nullptr;
  std::size_t having = 0;
  for (const PartView& part : version.parts) {
    if (!part.manifest || (options.rank && part.rank != *options.rank)) continue;
    if (inspect::find_region(*part.manifest, options.region) == nullptr) continue;
    if (having++ == 0) chosen = &part;
  }
  if (having > 1)
    return fail(Code::invalid_argument, "{} ranks have a region {}; say which one with --rank",
                having, in_quotes(options.region));
  if (chosen != nullptr) return chosen;
  if (options.rank && version.ranks > 0 && *options.rank >= version.ranks)
    return fail(Code::not_found, "version {} has no rank {}; it has {}", version.key.version,
                *options.rank, count_text(version.ranks, "rank"));
  if (options.rank) {
    const PartView* part = version.part(*options.rank);
    if (part == nullptr || !part->manifest)
      return fail(Code::corruption, "the manifest of rank {} cannot be read; see `belay check`",
                  *options.rank);
    return fail(Code::not_found, "rank {} has no region {}; it has {}", *options.rank,
                in_quotes(options.region), names_of(*part->manifest));
  }
  const Manifest* any = version.any_manifest();
  if (any == nullptr)
    return fail(Code::corruption, "no manifest of version {} can be read; see `belay check`",
                version.key.version);
  return fail(Code::not_found, "no rank has a region {}; rank {} has {}", in_quotes(options.region),
              any->origin.rank, names_of(*any));
}

/// A name for the file that is made of harmless characters only, whatever the region is called.
std::string default_output(const ExtractOptions& options, const VersionView& version, Rank rank) {
  std::string name;
  for (const char c : options.region.substr(0, 64)) {
    const bool harmless = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                          (c == '.' && !name.empty());
    name += harmless ? c : '_';
  }
  if (version.ranks > 1) name += fmt::format("-rank{}", rank);
  if (name.starts_with('-')) name.front() = '_';
  return name + (options.raw ? ".raw" : ".npy");
}

/// A region, or a variable of a packed set, and how to read it.
struct Extracted {
  RegionRecord region;
  Rank rank = 0;
  std::function<Result<void>(const files::TakeBytes&)> read;
  std::vector<files::Field> fields = {};
};

Result<void> read_region(inspect::PartReader& reader, const RegionRecord& region,
                         const files::TakeBytes& take) {
  std::vector<std::byte> piece(std::min(region.bytes, kPieceBytes));
  for (std::uint64_t at = 0; at < region.bytes;) {
    const auto bytes =
        std::span(piece).first(std::min<std::uint64_t>(piece.size(), region.bytes - at));
    BELAY_TRY(reader.read(region, at, bytes));
    BELAY_TRY(take(bytes));
    at += bytes.size();
  }
  return {};
}

nlohmann::json extract_json(const StoreView& view, const VersionView& version,
                            const RegionRecord& region, Rank rank, const NpyLayout& layout,
                            const ExtractOptions& options, const std::string& output) {
  nlohmann::json json = json_start("belay/extract/1", view);
  json.update(json_of(version.key));
  json["rank"] = rank;
  json["region"] = region.name;
  json["bytes"] = region.bytes;
  json["file"] = output;
  json["format"] = options.raw ? "raw" : "npy";
  if (!options.raw) json["dtype"] = layout.dtype;
  if (!options.raw) json["shape"] = layout.shape;
  return json;
}

Result<Exit> write_out(Shell& shell, const ExtractOptions& options, const StoreView& view,
                       const VersionView& version, const Extracted& extracted) {
  const RegionRecord& region = extracted.region;
  const NpyLayout layout = npy_layout(region, extracted.fields);
  const std::string path =
      options.output.empty() ? default_output(options, version, extracted.rank) : options.output;
  BELAY_ASSIGN(auto output, OutputFile::create(path, options.force));
  {
    Progress progress("extract", shell.draws() && !output.is_standard());
    std::uint64_t done = 0;
    if (!options.raw) BELAY_TRY(output.append(npy_header(layout)));
    const auto take = [&](std::span<const std::byte> bytes) {
      progress.update(done += bytes.size(), region.bytes);
      return output.append(bytes);
    };
    BELAY_TRY(extracted.read(take));
    BELAY_TRY(output.finish());
  }
  if (layout.flattened && !options.raw)
    shell.complain(fmt::format("the shape {} does not fit {} bytes or NumPy: written as one row",
                               shape_text(region.shape), region.bytes));
  if (!output.is_standard())
    shell.say(fmt::format("{}: {} of rank {}, {}{}", printable(path), in_quotes(region.name),
                          extracted.rank, format_bytes(region.bytes),
                          options.raw ? "" : fmt::format(", dtype {}", layout.dtype)));
  shell.answer(extract_json(view, version, region, extracted.rank, layout, options, path));
  return Exit::ok;
}

Result<Exit> extract(Shell& shell, const ExtractOptions& options, const StoreView& view,
                     const VersionView& version) {
  const auto arrays = PackedArrays::open(view, version);  // a damaged table hides no region
  if (arrays && *arrays && options.rank.value_or(0) == 0) {
    BELAY_ASSIGN(auto variable, (*arrays)->find(options.region));
    if (variable)
      return write_out(shell, options, view, version,
                       {.region = region_of(options.region, variable->array()),
                        .rank = 0,
                        .read = [&](const files::TakeBytes& take) { return variable->read(take); },
                        .fields = variable->fields()});
  }
  BELAY_ASSIGN(const PartView* part, choose_part(version, options));
  BELAY_ASSIGN(auto reader, inspect::PartReader::open(view, version, *part, options.region));
  const RegionRecord& region = *inspect::find_region(reader.manifest(), options.region);
  return write_out(shell, options, view, version,
                   {.region = region, .rank = part->rank, .read = [&](const auto& take) {
                      return read_region(reader, region, take);
                    }});
}

/// Regions that were named in a way that no file can follow.
std::optional<Error> contradiction(const ExtractOptions& options) {
  if (options.all && options.hdf5.empty())
    return Error(Code::invalid_argument, "--all goes to one file: name it with --hdf5");
  if (options.all == !options.region.empty())
    return Error(Code::invalid_argument, "name a region, or all of them with --all");
  if (!options.hdf5.empty() && (options.raw || !options.output.empty()))
    return Error(Code::invalid_argument, "--hdf5 names the file: leave out -o and --raw");
  return {};
}

Exit extract_region(Shell& shell, const ExtractOptions& options) {
  if (const auto wrong = contradiction(options)) return shell.fail(*wrong);
  if (!options.hdf5.empty())
    return with_version(shell, options.version, [&](const auto& view, const auto& version) {
      return extract_hdf5(shell, {options.hdf5, options.region, options.rank, options.force}, view,
                          version);
    });
  if (options.output == "-" && shell.json())
    return shell.fail(Error(Code::invalid_argument, "--json and -o - both want standard output"));
  if (options.output == "-" && !options.force && isatty(STDOUT_FILENO) == 1)
    return shell.fail(Error(Code::invalid_argument,
                            "standard output is a terminal; write to a file, or use --force"));
  return with_version(shell, options.version, [&](const auto& view, const auto& version) {
    return extract(shell, options, view, version);
  });
}

}  // namespace

void add_extract(CLI::App& tool, Shell& shell) {
  const auto options = std::make_shared<ExtractOptions>();
  CLI::App& command =
      shell.add(tool, "extract", "Write one region of one rank, or all of a version, to a file",
                {"belay extract latest temperature -o temperature.npy",
                 "belay extract 12 --all --hdf5 all.h5",
                 "belay extract 12 particles --rank 3 --raw -o particles.bin",
                 "belay extract latest grid --rank 0 -o - | python3 -c 'import numpy, sys, io; "
                 "print(numpy.load(io.BytesIO(sys.stdin.buffer.read())).mean())'"},
                [&shell, options] { return extract_region(shell, *options); });
  command.add_option("VERSION", options->version, kVersionHelp)->required();
  command.add_option("REGION", options->region,
                     "Name of the region; of a packed set FILE:VARIABLE, or the variable alone");
  command.add_flag("--all", options->all, "All regions of all ranks, to a file that --hdf5 names");
  command
      .add_option("--hdf5", options->hdf5,
                  "Write an HDF5 file: a group for each rank, a dataset for each region")
      ->type_name("FILE");
  command.add_option("--rank", options->rank, "Whose region; needed if several ranks have it")
      ->check(CLI::NonNegativeNumber)
      ->type_name("R");
  command
      .add_option("-o,--output", options->output,
                  "Where to; - is standard output (default: REGION.npy, odd characters replaced)")
      ->type_name("FILE");
  command.add_flag("--raw", options->raw, "The bytes alone, instead of a .npy file");
  command.add_flag("--force", options->force, "Replace a file that is there");
}

}  // namespace belay::tool
