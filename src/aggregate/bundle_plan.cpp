// SPDX-License-Identifier: Apache-2.0
#include "aggregate/bundle_plan.hpp"

#include <map>
#include <unordered_map>

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
  bool operator==(const Content&) const = default;
};
struct ContentHash {
  std::size_t operator()(const Content& content) const {
    return static_cast<std::size_t>(content.fingerprint.low ^ content.length);
  }
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
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      const auto& blocks = sources[i].blocks;
      plan_.entries.emplace_back(blocks.size(), format::kNotInBundle);
      for (std::uint32_t j = 0; j < blocks.size(); ++j)
        if (sources[i].needed[j])
          wanted_.try_emplace({blocks[j].fingerprint, blocks[j].length}, PlannedBlock{i, j});
    }
  }

  void add_variables(const std::vector<Manifest>& manifests) {
    std::map<Variable, std::vector<std::pair<const Manifest*, const RegionRecord*>>> variables;
    for (const Manifest& manifest : manifests)
      for (const RegionRecord& region : manifest.regions) {
        const bool small = region.bytes < kSmallBytes;
        const Variable variable = small
                                      ? Variable{kSmallVariables, ElementKind::bytes, 1}
                                      : Variable{region.name, region.type.kind, region.type.bytes};
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
    for (std::uint32_t i = 0; i < sources_.size(); ++i) {
      const auto& blocks = sources_[i].blocks;
      for (std::uint32_t j = 0; j < blocks.size(); ++j) {
        const auto found = entry_of_.find({blocks[j].fingerprint, blocks[j].length});
        if (sources_[i].needed[j] && found != entry_of_.end()) plan_.entries[i][j] = found->second;
      }
    }
    return std::move(plan_);
  }

 private:
  void add_region(const Variable& variable, const Manifest& manifest, const RegionRecord& region) {
    const auto elements = region.bytes < kSmallBytes
                              ? codec::Elements{}
                              : codec::elements_of(region.type, region.shape);
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i)
      add({manifest.fingerprints[region.first_block + i], manifest.length_of(region, i)}, variable,
          elements);
  }

  void add(const Content& content, const Variable& variable, const codec::Elements& elements) {
    const auto found = wanted_.find(content);
    if (found == wanted_.end()) return;
    const auto entry = static_cast<std::uint32_t>(plan_.blocks.size());
    const bool of_others = rank_begins_ && in_extent_ >= kEnoughBytes;
    rank_begins_ = false;
    if (plan_.extents.empty() || variable_ != variable || of_others ||
        in_extent_ + content.length > extent_bytes_) {
      plan_.extents.push_back({variable.name, elements, entry, 0});
      variable_ = variable;
      in_extent_ = 0;
    }
    plan_.blocks.push_back(found->second);
    entry_of_.emplace(content, entry);
    wanted_.erase(found);
    ++plan_.extents.back().count;
    in_extent_ += content.length;
    plan_.raw_bytes += content.length;
  }

  const std::vector<Source>& sources_;
  const std::uint64_t extent_bytes_;
  std::unordered_map<Content, PlannedBlock, ContentHash> wanted_;
  std::unordered_map<Content, std::uint32_t, ContentHash> entry_of_;
  Variable variable_;         ///< of the last extent
  bool rank_begins_ = false;  ///< what comes next is another rank's than what was last
  std::uint64_t in_extent_ = 0;
  BundlePlan plan_;
};

}  // namespace

BundlePlan plan_bundle(const std::vector<Source>& sources, const std::vector<Manifest>& manifests,
                       std::uint64_t extent_bytes) {
  Planner planner(sources, extent_bytes);
  planner.add_variables(manifests);
  planner.add_rest();
  return planner.finish();
}

}  // namespace belay::aggregate
