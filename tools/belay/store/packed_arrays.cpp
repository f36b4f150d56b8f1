// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/packed_arrays.hpp"

#include "base/try.hpp"
#include "files/unpack.hpp"

#include <map>

namespace belay::tool {
namespace {

std::optional<std::uint64_t> sum_of(const std::optional<std::uint64_t>& a,
                                    const std::optional<std::uint64_t>& b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

void add(ShownRegion& sum, const ShownRegion& part) {
  sum.change.region.bytes += part.change.region.bytes;
  sum.change.blocks += part.change.blocks;
  sum.change.own_blocks += part.change.own_blocks;
  sum.change.own_bytes += part.change.own_bytes;
  sum.change.changed_blocks = sum_of(sum.change.changed_blocks, part.change.changed_blocks);
  sum.change.changed_bytes = sum_of(sum.change.changed_bytes, part.change.changed_bytes);
  if (!sum.encoding || !part.encoding) return;
  sum.encoding->raw_bytes += part.encoding->raw_bytes;
  sum.encoding->encoded_bytes += part.encoding->encoded_bytes;
  if (sum.encoding->codecs.find(part.encoding->codecs) == std::string::npos)
    sum.encoding->codecs += ", " + part.encoding->codecs;
}

ShownRegion shown_in_skeleton(const files::PackedVariable& variable) {
  ShownRegion shown{.change = {}, .encoding = {}, .in_skeleton = true};
  shown.change.region = region_of(variable.name, variable.array);
  shown.change.region.bytes = variable.bytes;
  return shown;
}

}  // namespace

Result<std::unique_ptr<PackedArrays>> PackedArrays::open(const inspect::StoreView& view,
                                                         const inspect::VersionView& version) {
  if (!files::is_packed(version)) return std::unique_ptr<PackedArrays>();
  BELAY_ASSIGN(const auto* part, files::part_of(version));
  BELAY_ASSIGN(auto contents, files::read_contents(view, version));
  std::unique_ptr<PackedArrays> arrays(new PackedArrays(view, version, *part, std::move(contents)));
  BELAY_TRY(arrays->source_.open());
  arrays->variables_ = files::variables_of(arrays->contents_, *part->manifest);
  return arrays;
}

Result<std::optional<files::VariableReader>> PackedArrays::find(const std::string& name) {
  BELAY_ASSIGN(const auto found, files::find_variable(contents_, *part_.manifest, name));
  if (!found) return std::optional<files::VariableReader>();
  BELAY_ASSIGN(auto reader,
               files::VariableReader::open(source_, contents_.files[found->file], found->variable));
  return std::optional(std::move(reader));
}

Result<files::VariableReader> PackedArrays::reader(const files::PackedVariable& variable) {
  return files::VariableReader::open(source_, contents_.files[variable.file], variable.variable);
}

std::uint64_t PackedArrays::stored_bytes(const files::PackedVariable& variable) const {
  std::uint64_t sum = 0;
  for (const files::PackedRegion& region : contents_.files[variable.file].regions)
    if (region.variable == variable.variable) sum += bytes_of(region.ranges);
  return sum;
}

Result<void> PackedArrays::read_stored(const files::PackedVariable& variable,
                                       const files::TakeBytes& take) {
  for (const files::PackedRegion& region : contents_.files[variable.file].regions)
    if (region.variable == variable.variable) BELAY_TRY(source_.read(region, take));
  return {};
}

RegionRecord region_of(const std::string& name, const files::ArrayType& array) {
  return {.name = name,
          .type = array.type,
          .shape = array.shape,
          .bytes = array.bytes().value_or(0),
          .first_block = 0};
}

std::vector<ShownRegion> join_variables(std::vector<ShownRegion> regions,
                                        const std::vector<files::PackedVariable>& variables) {
  std::map<std::string, const files::PackedVariable*> variable_of;
  for (const files::PackedVariable& variable : variables)
    for (const std::string& region : variable.regions) variable_of.emplace(region, &variable);
  std::map<const files::PackedVariable*, std::size_t> joined_at;
  std::vector<ShownRegion> joined;
  for (ShownRegion& region : regions) {
    const auto found = variable_of.find(region.change.region.name);
    if (found == variable_of.end()) {
      joined.push_back(std::move(region));
      continue;
    }
    const files::PackedVariable& variable = *found->second;
    const auto [place, is_new] = joined_at.try_emplace(&variable, joined.size());
    if (!is_new) {
      add(joined[place->second], region);
      continue;
    }
    region.change.region.name = variable.name;
    region.change.region.type = variable.array.type;
    region.change.region.shape = variable.array.shape;
    joined.push_back(std::move(region));
  }
  for (const files::PackedVariable& variable : variables)
    if (variable.regions.empty()) joined.push_back(shown_in_skeleton(variable));
  return joined;
}

}  // namespace belay::tool
