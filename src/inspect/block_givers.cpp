// SPDX-License-Identifier: Apache-2.0
#include "inspect/block_givers.hpp"

#include "base/try.hpp"
#include "inspect/stripes.hpp"

#include <algorithm>
#include <set>

namespace belay::inspect {

BlockGivers::BlockGivers(const StoreView& view) : view_(view), sources_(view) {
  intern({});  // kNobody
}

std::size_t Giver::least_losses() const {
  std::size_t least = ~std::size_t{0};
  for (const Quorum& quorum : quorums) least = std::min(least, quorum.least_losses());
  return least;
}

std::size_t BlockGivers::lower_bound(const std::vector<std::size_t>& givers) const {
  std::size_t files = 0;
  std::size_t most = 0;
  for (const std::size_t giver : givers) {
    files += givers_[giver].is_file() ? 1 : 0;
    most = std::max(most, givers_[giver].least_losses());
  }
  return std::max(files, most);
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

void BlockGivers::add_blocks(const BlockSource& source, const store::SegmentFile& file) {
  const Giver giver = Giver::file_on(source.node);
  const auto stripe = source.kind == FileKind::segment ? stripes_.find(source.id) : stripes_.end();
  Blocks& blocks = blocks_[{source.id.key, file.header().hash, file.header().origin.seed}];
  for (const store::StoredBlock& block : file.blocks()) {
    GiverSet& set = blocks[{block.fingerprint, block.length}];
    set = with(set, giver);
    if (stripe == stripes_.end()) continue;
    const auto& [alone, member] = stripe->second;
    const bool in_gap =
        block.offset >= member.gap_begin && block.end() <= member.gap_begin + member.gap_bytes;
    if (!in_gap) set = with(set, givers_[sets_[alone].givers.front()]);
  }
}

/// What else can give blocks of a version comes in here, as one more giver of each.
void BlockGivers::read(VersionKey key, const StoreId& store) {
  for (const StripeView& stripe : view_.stripes().all())
    if (stripe.stripe.key == key && stripe.origin.store == store) add_stripe(stripe);
  std::set<SegmentId> there;
  for (const BlockSource& source : sources_.files_of({key, kAnyRank})) {
    const auto file =
        store::SegmentFile::open(view_.tier(source.node), source.id, store, {}, source.kind);
    if (!file) continue;  // it gives nothing; why is for `check` to say
    if (source.kind == FileKind::segment) there.insert(source.id);
    add_blocks(source, *file);
  }
  for (const auto& [id, stripe] : stripes_)
    if (id.key == key && !there.contains(id))
      lost_[key] = with(lost_[key], givers_[sets_[stripe.giver].givers.front()]);
}

/// A seat counts if its shards are there, since they are found together with its member, or lost.
void BlockGivers::add_stripe(const StripeView& view) {
  const Stripe& stripe = view.stripe;
  const auto* const layout = &view.layout;
  const std::uint32_t wanted = layout->scheme().members;
  const std::uint32_t positions = wanted + layout->scheme().shards;
  for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat) {
    if (stripe.members[seat].empty()) continue;
    Giver giver;
    for (const auto& piece : layout->contributions(seat)) {
      Quorum quorum{{}, wanted};
      for (std::uint32_t position = 0; position < positions; ++position) {
        // What is shorter counts as zeros, which nobody has to keep.
        const auto holder = view.node_of(layout->part_at(piece.codeword, position).place);
        if (layout->range_at(piece.codeword, position).length == 0)
          quorum.least -= quorum.least > 0 ? 1 : 0;
        else if (holder)
          quorum.nodes.push_back(*holder);
      }
      std::sort(quorum.nodes.begin(), quorum.nodes.end());
      giver.quorums.push_back(std::move(quorum));
    }
    const SegmentId id{stripe.key, stripe.members[seat].rank};
    if (!giver.quorums.empty()) stripes_[id] = {with(kNobody, giver), stripe.members[seat]};
  }
}

const BlockGivers::Blocks& BlockGivers::of(const Manifest& manifest, std::size_t holder) {
  const VersionKey key = manifest.segments[holder].id.key;
  if (read_.insert(key).second) read(key, manifest.origin.store);
  return blocks_[{key, manifest.hash, manifest.origin.seed}];
}

GiverSet BlockGivers::of_lost(const Manifest& manifest, std::size_t holder) const {
  const SegmentId& id = manifest.segments[holder].id;
  if (id.rank == kAnyRank) {
    const auto lost = lost_.find(id.key);
    return lost == lost_.end() ? kNobody : lost->second;
  }
  const auto stripe = stripes_.find(id);
  return stripe == stripes_.end() ? kNobody : stripe->second.giver;
}

bool BlockGivers::survives(GiverSet set, const std::vector<bool>& lost) const {
  const auto is_met = [&](const Quorum& quorum) {
    const auto left = std::count_if(quorum.nodes.begin(), quorum.nodes.end(),
                                    [&](std::size_t node) { return !lost[node]; });
    return static_cast<std::size_t>(left) >= quorum.least;
  };
  const auto& givers = sets_[set].givers;
  return std::any_of(givers.begin(), givers.end(), [&](std::size_t giver) {
    const auto& quorums = givers_[giver].quorums;
    return std::all_of(quorums.begin(), quorums.end(), is_met);
  });
}

std::size_t BlockGivers::nodes_with_it(GiverSet set) const {
  const auto& givers = sets_[set].givers;
  return static_cast<std::size_t>(std::count_if(
      givers.begin(), givers.end(), [&](std::size_t giver) { return givers_[giver].is_file(); }));
}

std::vector<std::size_t> BlockGivers::nodes_of(GiverSet set) const {
  std::set<std::size_t> nodes;
  for (const std::size_t giver : sets_[set].givers)
    for (const Quorum& quorum : givers_[giver].quorums)
      nodes.insert(quorum.nodes.begin(), quorum.nodes.end());
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
      set = givers.with(set, Giver::file_on(node));
    }
  }
  return found;
}

void count_blocks(const Manifest& manifest, BlockGivers& givers, std::vector<Dependence>& found) {
  std::vector<std::pair<const BlockGivers::Blocks*, GiverSet>> holders;
  const std::size_t holding = manifest.holding_segments();
  for (std::size_t i = 0; i < holding; ++i) {
    const auto* known = &givers.of(manifest, i);
    holders.emplace_back(known, givers.of_lost(manifest, i));
  }
  std::map<GiverSet, std::uint64_t> counts;
  for (const RegionRecord& region : manifest.regions) {
    const std::uint64_t blocks = manifest.blocks_of(region);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t block = region.first_block + i;
      const auto& [known, if_lost] = holders[manifest.holders[block]];
      const auto entry = known->find({manifest.fingerprints[block], manifest.length_of(region, i)});
      ++counts[entry == known->end() ? if_lost : entry->second];
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
