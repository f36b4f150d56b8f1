// SPDX-License-Identifier: Apache-2.0
// Who can give a block after nodes were lost, as the indexes of segments and copies tell. Blocks
// themselves are not read.
//
// Many blocks have the same givers: each set of givers is kept once and has a number, so that what
// a version counts on is a few lines, however many blocks it has.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace belay::inspect {

struct StripeView;

/// So many of these nodes must be left.
struct Quorum {
  std::vector<std::size_t> nodes;
  std::size_t least = 1;
  auto operator<=>(const Quorum&) const = default;

  /// Lost nodes that it takes to break it; with more than there are it cannot be broken.
  std::size_t least_losses() const {
    return least == 0 ? ~std::size_t{0} : nodes.size() + 1 - least;
  }
};

/// Gives a block for as long as all its quorums are met. A file is one quorum of one node; a stripe
/// is one for each of the codewords that a member has bytes in.
struct Giver {
  std::vector<Quorum> quorums;
  auto operator<=>(const Giver&) const = default;

  static Giver file_on(std::size_t node) { return {{{{node}, 1}}}; }
  bool is_file() const { return quorums.size() == 1 && quorums.front().nodes.size() == 1; }
  std::size_t least_losses() const;
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
  /// Of blocks of that segment that are in no index: its stripe, if it is lost and has one. Blocks
  /// elsewhere may be in any lost segment of the version.
  GiverSet of_lost(const Manifest& manifest, std::size_t holder) const;
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
  void add_blocks(const BlockSource& source, const store::SegmentFile& file);
  void add_stripe(const StripeView& view);
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
  struct StripeOf {
    GiverSet giver = kNobody;  ///< alone
    StripeMember member;
  };
  std::map<SegmentId, StripeOf> stripes_;  ///< of members
  std::map<VersionKey, GiverSet> lost_;    ///< stripes of members that are gone
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
