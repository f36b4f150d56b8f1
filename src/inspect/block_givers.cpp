// SPDX-License-Identifier: Apache-2.0
#include "inspect/block_givers.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <set>

namespace belay::inspect {

BlockGivers::BlockGivers(const StoreView& view) : view_(view), sources_(view.nodes()) {
  intern({});  // kNobody
}

std::size_t BlockGivers::lower_bound(const std::vector<std::size_t>& givers) const {
  std::size_t single = 0;
  std::size_t most = 0;
  for (const std::size_t giver : givers) {
    const auto& [nodes, least] = givers_[giver];
    if (nodes.size() == 1) ++single;
    most = std::max(most, nodes.size() - least + 1);
  }
  return std::max(single, most);
}

GiverSet BlockGivers::intern(std::vector<std::size_t> givers) {
  const auto [entry, is_new] =
      interned_.try_emplace(std::move(givers), static_cast<GiverSet>(sets_.size()));
  if (is_new) sets_.push_back({entry->first, lower_bound(entry->first)});
  return entry->second;
}

GiverSet BlockGivers::with(GiverSet set, const Giver& giver) {
  const auto [number, is_new] = numbers_.try_emplace(giver, givers_.size());
  if (is_new) givers_.push_back(giver);
  const auto known = joined_.find({set, number->second});
  if (known != joined_.end()) return known->second;
  std::vector<std::size_t> givers = sets_[set].givers;
  const auto place = std::lower_bound(givers.begin(), givers.end(), number->second);
  if (place == givers.end() || *place != number->second) givers.insert(place, number->second);
  const GiverSet made = intern(std::move(givers));
  joined_.emplace(std::pair(set, number->second), made);
  return made;
}

/// What else can give blocks of this version comes in here, as one more giver of each.
void BlockGivers::read(VersionKey key, const StoreId& store) {
  for (const BlockSource& source : sources_.of({key, kAnyRank})) {
    const auto file =
        store::SegmentFile::open(view_.tier(source.node), source.id, store, {}, source.kind);
    if (!file) continue;  // it gives nothing; why is for `check` to say
    const Giver giver{{source.node}, 1};
    Blocks& blocks = blocks_[{key, file->header().hash, file->header().origin.seed}];
    for (const store::StoredBlock& block : file->blocks()) {
      GiverSet& set = blocks[{block.fingerprint, block.length}];
      set = with(set, giver);
    }
  }
}

const BlockGivers::Blocks& BlockGivers::of(const Manifest& manifest, std::size_t holder) {
  const VersionKey key = manifest.segments[holder].id.key;
  if (read_.insert(key).second) read(key, manifest.origin.store);
  return blocks_[{key, manifest.hash, manifest.origin.seed}];
}

bool BlockGivers::survives(GiverSet set, const std::vector<bool>& lost) const {
  const auto& givers = sets_[set].givers;
  return std::any_of(givers.begin(), givers.end(), [&](std::size_t giver) {
    const auto& [nodes, least] = givers_[giver];
    const auto left =
        std::count_if(nodes.begin(), nodes.end(), [&](auto node) { return !lost[node]; });
    return static_cast<std::size_t>(left) >= least;
  });
}

std::size_t BlockGivers::nodes_with_it(GiverSet set) const {
  const auto& givers = sets_[set].givers;
  return static_cast<std::size_t>(std::count_if(
      givers.begin(), givers.end(), [&](auto giver) { return givers_[giver].nodes.size() == 1; }));
}

std::vector<std::size_t> BlockGivers::nodes_of(GiverSet set) const {
  std::set<std::size_t> nodes;
  for (const std::size_t giver : sets_[set].givers)
    nodes.insert(givers_[giver].nodes.begin(), givers_[giver].nodes.end());
  return {nodes.begin(), nodes.end()};
}

namespace {

/// By rank, where the version's manifests lie; those that the view has found a flaw in give
/// nothing.
std::map<Rank, GiverSet> manifest_givers(const StoreView& view, const VersionView& version,
                                         BlockGivers& givers) {
  std::set<std::pair<std::string, std::string>> flawed;
  for (const auto* flaws : {&view.flaws(), &version.flaws})
    for (const Flaw& flaw : *flaws) flawed.insert({flaw.directory, flaw.file});
  std::map<Rank, GiverSet> found;
  for (std::size_t node = 0; node < view.nodes().size(); ++node) {
    const NodeView& here = view.nodes()[node];
    for (const FoundFile& file : here.files) {
      const auto& parsed = file.parsed;
      if (!file.regular || !parsed || parsed->temporary || parsed->key != version.key ||
          parsed->kind != format::NameKind::manifest ||
          flawed.contains({here.directory, file.name}))
        continue;
      GiverSet& set = found[parsed->rank];
      set = givers.with(set, {{node}, 1});
    }
  }
  return found;
}

void count_blocks(const Manifest& manifest, BlockGivers& givers, std::vector<Dependence>& found) {
  std::vector<const BlockGivers::Blocks*> holders;
  const std::size_t holding = manifest.holding_segments();
  for (std::size_t i = 0; i < holding; ++i) holders.push_back(&givers.of(manifest, i));
  std::map<GiverSet, std::uint64_t> counts;
  for (const RegionRecord& region : manifest.regions) {
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = region.first_block + i;
      const auto& known = *holders[manifest.holders[block]];
      const auto entry = known.find({manifest.fingerprints[block], manifest.length_of(region, i)});
      ++counts[entry == known.end() ? kNobody : entry->second];
    }
  }
  for (const auto& [set, blocks] : counts) found.push_back({manifest.origin.rank, set, blocks});
}

}  // namespace

Result<std::vector<Dependence>> dependences_of(const StoreView& view, const VersionView& version,
                                               BlockGivers& givers) {
  const auto manifests = manifest_givers(view, version, givers);
  std::vector<Dependence> found;
  for (const PartView& part : version.parts) {
    const auto set = manifests.find(part.rank);
    found.push_back(
        {part.rank, set == manifests.end() || !part.manifest ? kNobody : set->second, 0});
    if (!part.manifest) continue;
    BELAY_ASSIGN(const auto manifest, view.load(part, version.key));
    count_blocks(manifest, givers, found);
  }
  // One rank without a manifest is enough to say that nobody has it.
  for (Rank rank = 0; version.parts.size() < version.ranks; ++rank) {
    if (version.part(rank) != nullptr) continue;
    found.push_back({rank, kNobody, 0});
    break;
  }
  return found;
}

}  // namespace belay::inspect
