// SPDX-License-Identifier: Apache-2.0
#include "files/packed_variables.hpp"

#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace belay::files {
namespace {

constexpr std::string_view kFirstPart = "[0]";

using RegionPlace = std::pair<std::size_t, const PackedRegion*>;  ///< and the file

std::map<std::string, RegionPlace> places_of(const Contents& contents) {
  std::map<std::string, RegionPlace> places;
  for (std::size_t file = 0; file < contents.files.size(); ++file)
    for (const PackedRegion& region : contents.files[file].regions)
      places.emplace(region.region, RegionPlace(file, &region));
  return places;
}

bool has_variable(const PackedFile& file, const std::string& variable) {
  return std::any_of(file.regions.begin(), file.regions.end(),
                     [&](const PackedRegion& region) { return region.variable == variable; }) ||
         std::any_of(file.in_skeleton.begin(), file.in_skeleton.end(),
                     [&](const SkeletonEntry& entry) { return entry.variable == variable; });
}

std::string name_of(const PackedRegion& region) {
  const bool first_part =
      region.region.ends_with(kFirstPart) && !region.variable.ends_with(kFirstPart);
  return region.region.substr(0, region.region.size() - (first_part ? kFirstPart.size() : 0));
}

/// Everything that this name could mean, each file once.
std::map<std::size_t, std::string> variables_called(const Contents& contents,
                                                    const std::string& name) {
  std::map<std::size_t, std::string> found;
  for (std::size_t file = 0; file < contents.files.size(); ++file)
    if (!name.empty() && has_variable(contents.files[file], name)) found.emplace(file, name);
  return found;
}

/// `path:variable`; both may have colons.
std::optional<FoundVariable> behind_path(const Contents& contents, const std::string& name) {
  std::optional<FoundVariable> found;
  for (std::size_t file = 0; file < contents.files.size(); ++file) {
    const PackedFile& packed = contents.files[file];
    if (!name.starts_with(packed.path + ":") || name.size() == packed.path.size() + 1) continue;
    const std::string variable = name.substr(packed.path.size() + 1);
    if (has_variable(packed, variable)) return FoundVariable{file, variable};
    if (packed.format != FileFormat::other) found = FoundVariable{file, variable};
  }
  return found;
}

}  // namespace

std::vector<PackedVariable> variables_of(const Contents& contents, const Manifest& manifest) {
  const auto places = places_of(contents);
  std::map<std::pair<std::size_t, std::string>, std::size_t> known;
  std::vector<PackedVariable> variables;
  for (const RegionRecord& region : manifest.regions) {
    const auto place = places.find(region.name);
    if (place == places.end()) continue;
    const auto& [file, packed] = place->second;
    const auto [entry, is_new] = known.try_emplace({file, packed->variable}, variables.size());
    if (is_new)
      variables.push_back({.name = name_of(*packed),
                           .file = file,
                           .variable = packed->variable,
                           .array = packed->whole.value_or(ArrayType{region.type, region.shape}),
                           .bytes = 0,
                           .regions = {}});
    variables[entry->second].bytes += region.bytes;
    variables[entry->second].regions.push_back(region.name);
  }
  for (std::size_t file = 0; file < contents.files.size(); ++file)
    for (const SkeletonEntry& entry : contents.files[file].in_skeleton)
      variables.push_back({.name = entry.name,
                           .file = file,
                           .variable = entry.variable,
                           .array = entry.array,
                           .bytes = entry.bytes,
                           .regions = {}});
  return variables;
}

Result<std::optional<FoundVariable>> find_variable(const Contents& contents,
                                                   const Manifest& manifest,
                                                   const std::string& name) {
  for (const PackedVariable& variable : variables_of(contents, manifest))
    if (variable.name == name)
      return variable.variable.empty()
                 ? std::optional<FoundVariable>()
                 : std::optional(FoundVariable{variable.file, variable.variable});
  if (auto found = behind_path(contents, name)) return found;
  const auto called = variables_called(contents, name);
  if (called.size() > 1)
    return fail(Code::invalid_argument, "{} files have a variable {}; say whose, as in {}",
                called.size(), in_quotes(name),
                in_quotes(contents.files[called.begin()->first].path + ":" + name));
  if (called.empty()) return std::optional<FoundVariable>();
  return std::optional(FoundVariable{called.begin()->first, name});
}

}  // namespace belay::files
