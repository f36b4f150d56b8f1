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

/// A content that the bundle needs. There may be millions: they take as little as they can.
struct Wanted {
  Content content;
  std::uint32_t entry = format::kNotInBundle;  ///< in the bundle's index, once it has a place
  PlannedBlock place;                          ///< where it comes from
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
    for (const Source& source : sources)
      needed +=
          static_cast<std::size_t>(std::count(source.needed.begin(), source.needed.end(), true));
    wanted_.reserve(needed);
    for (std::uint32_t i = 0; i < sources.size(); ++i) {
      const auto& blocks = sources[i].blocks;
      for (std::uint32_t j = 0; j < blocks.size(); ++j)
        if (sources[i].needed[j])
          wanted_.push_back(
              {{blocks[j].fingerprint, blocks[j].length}, format::kNotInBundle, {i, j}});
    }
    // Of equal ones the first in the order of sources stays.
    std::sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) {
      return std::tuple(a.content.key(), a.place.source, a.place.block) <
             std::tuple(b.content.key(), b.place.source, b.place.block);
    });
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end(),
                              [](const Wanted& a, const Wanted& b) {
                                return a.content.key() == b.content.key();
                              }),
                  wanted_.end());
  }

  void add_variables(const std::vector<Manifest>& manifests, const NameMatch& match) {
    std::map<Variable, std::vector<std::pair<const Manifest*, const RegionRecord*>>> variables;
    for (const Manifest& manifest : manifests)
      for (const RegionRecord& region : manifest.regions) {
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
    for (const Source& source : sources_) {
      auto& entries = plan_.entries.emplace_back(source.blocks.size(), format::kNotInBundle);
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (source.needed[i])
          entries[i] = find({source.blocks[i].fingerprint, source.blocks[i].length})->entry;
    }
    return std::move(plan_);
  }

 private:
  Wanted* find(const Content& content) {
    const auto found = std::lower_bound(
        wanted_.begin(), wanted_.end(), content,
        [](const Wanted& a, const Content& b) { return a.content.key() < b.key(); });
    return found == wanted_.end() || found->content.key() != content.key() ? nullptr : &*found;
  }

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
    Wanted* const found = find(content);
    if (found == nullptr || found->entry != format::kNotInBundle) return;
    const auto entry = static_cast<std::uint32_t>(plan_.blocks.size());
    const bool of_others = rank_begins_ && in_extent_ >= kEnoughBytes;
    rank_begins_ = false;
    if (plan_.extents.empty() || variable_ != variable || of_others ||
        in_extent_ + content.length > extent_bytes_) {
      plan_.extents.push_back({variable.name, elements, entry, 0});
      variable_ = variable;
      in_extent_ = 0;
    }
    plan_.blocks.push_back(found->place);
    found->entry = entry;
    ++plan_.extents.back().count;
    in_extent_ += content.length;
    plan_.raw_bytes += content.length;
  }

  const std::vector<Source>& sources_;
  const std::uint64_t extent_bytes_;
  std::vector<Wanted> wanted_;  ///< by content, each once
  Variable variable_;           ///< of the last extent
  bool rank_begins_ = false;    ///< what comes next is another rank's than what was last
  std::uint64_t in_extent_ = 0;
  BundlePlan plan_;
};

}  // namespace

BundlePlan plan_bundle(const std::vector<Source>& sources, const std::vector<Manifest>& manifests,
                       std::uint64_t extent_bytes, const NameMatch& match) {
  Planner planner(sources, extent_bytes);
  planner.add_variables(manifests, match);
  planner.add_rest();
  return planner.finish();
}

}  // namespace belay::aggregate
