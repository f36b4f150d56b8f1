// SPDX-License-Identifier: Apache-2.0
// Who can give a block after nodes were lost, as the indexes of segments and copies tell. Blocks
// themselves are not read.
//
// Many blocks have the same givers: each set of givers is kept once and has a number, so that what
// a version counts on is a few lines, however many blocks it has.
#pragma once

#include <belay/result.hpp>

#include "inspect/block_sources.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace belay::inspect {

/// Gives a block for as long as `least` of these nodes are left. A file is one of one node.
struct Giver {
  std::vector<std::size_t> nodes;
  std::size_t least = 1;
  auto operator<=>(const Giver&) const = default;
};

/// The number of a set of givers, each of which suffices.
using GiverSet = std::uint32_t;
inline constexpr GiverSet kNobody = 0;

/// `view` must outlive it. One thread.
class BlockGivers {
 public:
  explicit BlockGivers(const StoreView& view);

  using Blocks = std::unordered_map<BlockName, GiverSet, BlockNameHash>;
  /// Of all blocks that may be those of the manifest's holding segment `holder`; what is not there
  /// nobody has. Reads the indexes of all files of that segment's version when it is asked for the
  /// first time.
  const Blocks& of(const Manifest& manifest, std::size_t holder);
  /// The set with one more in it.
  GiverSet with(GiverSet set, const Giver& giver);

  /// `lost`: by node.
  bool survives(GiverSet set, const std::vector<bool>& lost) const;
  /// Fewer lost nodes than this never cost a block with these givers.
  std::size_t least_losses(GiverSet set) const { return sets_[set].least_losses; }
  /// On so many nodes lies a file that has the block.
  std::size_t nodes_with_it(GiverSet set) const;
  /// All that any of its givers needs, sorted.
  std::vector<std::size_t> nodes_of(GiverSet set) const;

 private:
  using Kind = std::tuple<VersionKey, HashKind, std::uint64_t>;
  struct Set {
    std::vector<std::size_t> givers;  ///< sorted
    std::size_t least_losses = 0;
  };

  void read(VersionKey key, const StoreId& store);
  GiverSet intern(std::vector<std::size_t> givers);
  std::size_t lower_bound(const std::vector<std::size_t>& givers) const;

  const StoreView& view_;
  BlockSources sources_;
  std::map<Giver, std::size_t> numbers_;
  std::vector<Giver> givers_;
  std::map<std::vector<std::size_t>, GiverSet> interned_;
  std::vector<Set> sets_;
  std::map<std::pair<GiverSet, std::size_t>, GiverSet> joined_;
  std::set<VersionKey> read_;
  std::map<Kind, Blocks> blocks_;
};

/// So many blocks of a rank have these givers. `blocks` is 0: it is about the rank's manifest.
struct Dependence {
  Rank rank = 0;
  GiverSet givers = kNobody;
  std::uint64_t blocks = 0;
};

/// Everything that must be found for the version to exist; by rank, the manifest first. not_found
/// if a running job has retired it meanwhile.
Result<std::vector<Dependence>> dependences_of(const StoreView& view, const VersionView& version,
                                               BlockGivers& givers);

}  // namespace belay::inspect
