// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/fingerprint_lists.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace belay::tool {
namespace {

using Kind = Difference::Kind;

const RegionRecord* region_of(const Manifest& manifest, const std::string& name) {
  const auto found = std::find_if(manifest.regions.begin(), manifest.regions.end(),
                                  [&](const RegionRecord& region) { return region.name == name; });
  return found == manifest.regions.end() ? nullptr : &*found;
}

std::set<std::string> names_in(const Manifest& a, const Manifest& b) {
  std::set<std::string> names;
  for (const RegionRecord& region : a.regions) names.insert(region.name);
  for (const RegionRecord& region : b.regions) names.insert(region.name);
  return names;
}

void find_blocks(const Manifest& a, const RegionRecord& in_a, const Manifest& b,
                 const RegionRecord& in_b, Difference& difference) {
  difference.blocks = a.blocks_of(in_a);
  for (std::uint64_t block = 0; block < difference.blocks; ++block) {
    if (a.fingerprints[in_a.first_block + block] == b.fingerprints[in_b.first_block + block])
      continue;
    if (difference.differing == 0) difference.first_block = difference.last_block = block;
    if (block == difference.last_block + 1) difference.last_block = block;
    ++difference.differing;
  }
}

/// One region of one rank; nothing if it is the same.
std::optional<Difference> difference_of(const Manifest& a, const Manifest& b,
                                        const std::string& name) {
  const RegionRecord* in_a = region_of(a, name);
  const RegionRecord* in_b = region_of(b, name);
  Difference difference;
  difference.region = name;
  if (in_a == nullptr || in_b == nullptr) {
    difference.kind = in_b == nullptr ? Kind::only_in_first : Kind::only_in_second;
    return difference;
  }
  difference.first_bytes = in_a->bytes;
  difference.second_bytes = in_b->bytes;
  if (in_a->bytes != in_b->bytes || a.block_bytes != b.block_bytes) {
    difference.kind = Kind::size;
    return difference;
  }
  find_blocks(a, *in_a, b, *in_b, difference);
  if (difference.differing > 0) return difference;
  if (in_a->type == in_b->type && in_a->shape == in_b->shape) return std::nullopt;
  difference.kind = Kind::type;
  return difference;
}

}  // namespace

Comparison compare(Series first, Series second) {
  Comparison comparison;
  std::set<std::string> names;
  std::map<std::string, Difference> found;
  for (std::size_t place = 0; place < std::min(first.size(), second.size()); ++place) {
    const auto& a = first[place].ranks;
    const auto& b = second[place].ranks;
    for (Rank rank = 0; rank < std::min(a.size(), b.size()); ++rank)
      for (const std::string& name : names_in(a[rank], b[rank])) {
        names.insert(name);
        auto difference = difference_of(a[rank], b[rank], name);
        if (!difference) {
          ++comparison.equal_regions;
          continue;
        }
        difference->place = place;
        difference->rank = rank;
        const auto [known, is_new] = found.emplace(name, *difference);
        if (!is_new && known->second.place == place) ++known->second.ranks;
      }
  }
  for (const std::string& name : names)
    if (!found.contains(name)) comparison.agreeing.push_back(name);
  for (auto& difference : found) comparison.differences.push_back(std::move(difference.second));
  std::stable_sort(comparison.differences.begin(), comparison.differences.end(),
                   [](const Difference& a, const Difference& b) { return a.place < b.place; });
  return comparison;
}

}  // namespace belay::tool
