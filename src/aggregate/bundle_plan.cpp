// SPDX-License-Identifier: Apache-2.0
#include "aggregate/bundle_plan.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace belay::aggregate {
namespace {

// An extent of so much gains little by what other ranks have, who would all have to read it.
constexpr std::uint64_t kEnoughBytes = std::uint64_t{512} << 10;
// A codec and an extent for each of these would cost more than it saves.
constexpr std::uint64_t kSmallBytes = 100;
constexpr const char* kSmallVariables = "(small)";
constexpr const char* kUnnamed = "(other)";  ///< blocks that only ranks of other sets know

struct Content {
  Fingerprint fingerprint;
  std::uint32_t length = 0;

  auto key() const { return std::tie(fingerprint.low, fingerprint.high, length); }
};

/// Regions that are merged: in the order of their names.
struct Variable {
  std::string name;
  ElementKind kind = ElementKind::bytes;
  std::uint32_t bytes = 1;
  auto operator<=>(const Variable&) const = default;
};

bool is_small(const RegionRecord& region) { return region.bytes < kSmallBytes; }

Variable variable_of(const RegionRecord& region, const NameMatch& match) {
  if (is_small(region)) return {kSmallVariables, ElementKind::bytes, 1};
  return {match.key(region.name), region.type.kind, region.type.bytes};
}

codec::Elements elements_of(const RegionRecord& region) {
  return is_small(region) ? codec::Elements{} : codec::elements_of(region.type, region.shape);
}

/// Puts blocks into extents.
class Cutter {
 public:
  Cutter(BundlePlan& plan, std::uint64_t extent_bytes) : plan_(plan), extent_bytes_(extent_bytes) {}

  /// The entry of the block. `apart`: an extent that has enough need not have it.
  std::uint32_t add(const PlannedBlock& block, std::uint32_t length, const Variable& variable,
                    const codec::Elements& elements, bool apart = false) {
    const auto entry = static_cast<std::uint32_t>(plan_.blocks.size());
    if (plan_.extents.empty() || variable_ != variable || (apart && in_extent_ >= kEnoughBytes) ||
        in_extent_ + length > extent_bytes_) {
      begin_extent({variable.name, elements}, entry);
      variable_ = variable;
    }
    plan_.blocks.push_back(block);
    ++plan_.extents.back().count;
    in_extent_ += length;
    plan_.raw_bytes += length;
    return entry;
  }

 private:
  void begin_extent(PlannedVariable variable, std::uint32_t first) {
    if (plan_.variables.empty() || plan_.variables.back() != variable)
      plan_.variables.push_back(std::move(variable));
    plan_.extents.push_back({static_cast<std::uint32_t>(plan_.variables.size() - 1), 0, first});
    in_extent_ = 0;
  }

  BundlePlan& plan_;
  const std::uint64_t extent_bytes_;
  Variable variable_;  ///< of the last extent
  std::uint64_t in_extent_ = 0;
};

class Planner {
 public:
  Planner(const std::vector<Source>& sources, std::uint64_t extent_bytes)
      : sources_(sources), cutter_(plan_, extent_bytes) {
    std::size_t needed = 0;
    for (const Source& source : sources) {
      needed +=
          static_cast<std::size_t>(std::count(source.needed.begin(), source.needed.end(), true));
      plan_.entries.emplace_back(source.blocks.size(), format::kNotInBundle);
    }
    wanted_.reserve(needed);
    for (std::uint32_t i = 0; i < sources.size(); ++i)
      for (std::uint32_t j = 0; j < sources[i].blocks.size(); ++j)
        if (sources[i].needed[j]) wanted_.push_back({i, j});
    // Of equal ones the first in the order of sources stays.
    std::sort(wanted_.begin(), wanted_.end(), [&](const PlannedBlock& a, const PlannedBlock& b) {
      return std::tuple(content(a).key(), a.source, a.block) <
             std::tuple(content(b).key(), b.source, b.block);
    });
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end(),
                              [&](const PlannedBlock& a, const PlannedBlock& b) {
                                return content(a).key() == content(b).key();
                              }),
                  wanted_.end());
    plan_.blocks.reserve(wanted_.size());
  }

  void add_variables(std::span<const format::ManifestView> manifests, const NameMatch& match) {
    std::map<Variable, std::vector<std::pair<const format::ManifestView*, const RegionRecord*>>>
        variables;
    for (const format::ManifestView& manifest : manifests)
      for (const RegionRecord& region : manifest.head().regions)
        variables[variable_of(region, match)].emplace_back(&manifest, &region);
    for (const auto& [variable, regions] : variables)
      for (const auto& [manifest, region] : regions) {
        rank_begins_ = true;
        add_region(variable, *manifest, *region);
      }
  }

  void add_rest() {
    for (std::uint32_t i = 0; i < sources_.size(); ++i)
      for (const store::StoredBlock& block : sources_[i].blocks)
        add({block.fingerprint, block.length}, {kUnnamed}, {});
  }

  /// Every needed block that has the content of one in the bundle is in it as well.
  BundlePlan finish() {
    for (std::uint32_t i = 0; i < sources_.size(); ++i)
      for (std::uint32_t j = 0; j < sources_[i].blocks.size(); ++j)
        if (sources_[i].needed[j]) entry_of({i, j}) = entry_of(*find(content({i, j})));
    return std::move(plan_);
  }

 private:
  Content content(const PlannedBlock& block) const {
    const store::StoredBlock& stored = sources_[block.source].blocks[block.block];
    return {stored.fingerprint, stored.length};
  }
  std::uint32_t& entry_of(const PlannedBlock& block) {
    return plan_.entries[block.source][block.block];
  }

  const PlannedBlock* find(const Content& wanted) const {
    const auto found = std::lower_bound(
        wanted_.begin(), wanted_.end(), wanted,
        [&](const PlannedBlock& a, const Content& b) { return content(a).key() < b.key(); });
    return found == wanted_.end() || content(*found).key() != wanted.key() ? nullptr : &*found;
  }

  void add_region(const Variable& variable, const format::ManifestView& manifest,
                  const RegionRecord& region) {
    const auto elements = elements_of(region);
    const Manifest& head = manifest.head();
    const std::uint64_t blocks = head.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i)
      add({manifest.fingerprint(region.first_block + i), head.length_of(region, i)}, variable,
          elements);
  }

  void add(const Content& content, const Variable& variable, const codec::Elements& elements) {
    const PlannedBlock* const found = find(content);
    if (found == nullptr || entry_of(*found) != format::kNotInBundle) return;
    entry_of(*found) =
        cutter_.add(*found, content.length, variable, elements, std::exchange(rank_begins_, false));
  }

  const std::vector<Source>& sources_;
  /// By content, each once. There may be millions: they take as little as they can.
  os::PagedVector<PlannedBlock> wanted_;
  bool rank_begins_ = false;  ///< what comes next is another rank's than what was last
  BundlePlan plan_;
  Cutter cutter_;
};

}  // namespace

BundlePlan plan_bundle(const std::vector<Source>& sources,
                       std::span<const format::ManifestView> manifests, std::uint64_t extent_bytes,
                       const NameMatch& match) {
  Planner planner(sources, extent_bytes);
  planner.add_variables(manifests, match);
  planner.add_rest();
  return planner.finish();
}

BundlePlan plan_in_order(const Source& source, const Manifest& manifest,
                         std::span<const std::uint32_t> regions, std::uint64_t extent_bytes,
                         const NameMatch& match) {
  BundlePlan plan;
  plan.entries.emplace_back(source.blocks.size(), format::kNotInBundle);
  plan.blocks.reserve(
      static_cast<std::size_t>(std::count(source.needed.begin(), source.needed.end(), true)));
  Cutter cutter(plan, extent_bytes);
  std::uint32_t last = kNoRegion;
  Variable variable{kUnnamed};
  codec::Elements elements;
  const auto add_those = [&](bool small) {
    for (std::uint32_t i = 0; i < source.blocks.size(); ++i) {
      const bool is_known = regions[i] < manifest.regions.size();
      if (!source.needed[i] || small != (is_known && is_small(manifest.regions[regions[i]])))
        continue;
      if (regions[i] != last) {
        variable = is_known ? variable_of(manifest.regions[regions[i]], match) : Variable{kUnnamed};
        elements = is_known ? elements_of(manifest.regions[regions[i]]) : codec::Elements{};
        last = regions[i];
      }
      plan.entries[0][i] = cutter.add({0, i}, source.blocks[i].length, variable, elements);
    }
  };
  add_those(/*small=*/false);
  add_those(/*small=*/true);  // together, instead of in extents of their own
  return plan;
}

}  // namespace belay::aggregate
