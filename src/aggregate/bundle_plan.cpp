// SPDX-License-Identifier: Apache-2.0
#include "aggregate/bundle_plan.hpp"

#include <algorithm>
#include <map>
#include <tuple>

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

class Planner {
 public:
  Planner(const std::vector<Source>& sources, std::uint64_t extent_bytes)
      : sources_(sources), extent_bytes_(extent_bytes) {
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
      for (const RegionRecord& region : manifest.head().regions) {
        const bool small = region.bytes < kSmallBytes;
        const Variable variable =
            small ? Variable{kSmallVariables, ElementKind::bytes, 1}
                  : Variable{match.key(region.name), region.type.kind, region.type.bytes};
        variables[variable].emplace_back(&manifest, &region);
      }
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
    const auto elements = region.bytes < kSmallBytes
                              ? codec::Elements{}
                              : codec::elements_of(region.type, region.shape);
    const Manifest& head = manifest.head();
    const std::uint64_t blocks = head.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i)
      add({manifest.fingerprint(region.first_block + i), head.length_of(region, i)}, variable,
          elements);
  }

  void add(const Content& content, const Variable& variable, const codec::Elements& elements) {
    const PlannedBlock* const found = find(content);
    if (found == nullptr || entry_of(*found) != format::kNotInBundle) return;
    const auto entry = static_cast<std::uint32_t>(plan_.blocks.size());
    const bool of_others = rank_begins_ && in_extent_ >= kEnoughBytes;
    rank_begins_ = false;
    if (plan_.extents.empty() || variable_ != variable || of_others ||
        in_extent_ + content.length > extent_bytes_) {
      begin_extent({variable.name, elements}, entry);
      variable_ = variable;
    }
    plan_.blocks.push_back(*found);
    entry_of(*found) = entry;
    ++plan_.extents.back().count;
    in_extent_ += content.length;
    plan_.raw_bytes += content.length;
  }

  void begin_extent(PlannedVariable variable, std::uint32_t first) {
    if (plan_.variables.empty() || plan_.variables.back() != variable)
      plan_.variables.push_back(std::move(variable));
    plan_.extents.push_back({static_cast<std::uint32_t>(plan_.variables.size() - 1), 0, first});
    in_extent_ = 0;
  }

  const std::vector<Source>& sources_;
  const std::uint64_t extent_bytes_;
  /// By content, each once. There may be millions: they take as little as they can.
  os::PagedVector<PlannedBlock> wanted_;
  Variable variable_;         ///< of the last extent
  bool rank_begins_ = false;  ///< what comes next is another rank's than what was last
  std::uint64_t in_extent_ = 0;
  BundlePlan plan_;
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

}  // namespace belay::aggregate
