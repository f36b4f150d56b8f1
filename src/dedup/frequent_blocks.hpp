// SPDX-License-Identifier: Apache-2.0
// Which blocks do many ranks have? A table of bounded size that ranks merge pairwise, up a tree of
// any shape, and that the root then gives to all.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "dedup/node_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::dedup {

/// A block by content. Equality means both.
struct Block {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  bool operator==(const Block&) const = default;
};

/// The order of tables. Without branches, since nobody can guess how two fingerprints compare.
inline bool before(const Block& a, const Block& b) {
  const bool length = a.length < b.length;
  const bool low =
      (a.fingerprint.low < b.fingerprint.low) | ((a.fingerprint.low == b.fingerprint.low) & length);
  return (a.fingerprint.high < b.fingerprint.high) |
         ((a.fingerprint.high == b.fingerprint.high) & low);
}

/// The same for the standard library.
struct Before {
  bool operator()(const Block& a, const Block& b) const { return before(a, b); }
};

/// The most frequent blocks of some ranks, at most `capacity` (F of the paper). Each has designated
/// ranks: one to K of those that have the block, on distinct nodes, which will store it for all
/// others. What is not in the table is stored by every rank that has it: a bound too small costs
/// space, never a copy.
///
/// Choosing designated ranks is where the load is balanced: the table carries, for each rank, the
/// bytes that it will have to store as far as is known, and the most loaded are dropped first.
class FrequentBlocks {
 public:
  struct Entry {
    Fingerprint fingerprint;
    std::uint32_t length = 0;
    std::uint32_t frequency = 0;  ///< ranks that were seen with it
    Block block() const { return {fingerprint, length}; }
    bool operator==(const Entry&) const = default;
  };
  static_assert(sizeof(Entry) == 24, "entries travel as they lie in memory");

  /// The bytes of one rank's load.
  struct Load {
    Rank rank = 0;
    std::uint64_t bytes = 0;
    bool operator==(const Load&) const = default;
  };

  FrequentBlocks() = default;  ///< nobody has anything

  /// The blocks of one rank, in any order; those with the smallest fingerprints if there are more
  /// than `capacity`, so that all ranks keep the same ones. Lengths are 1 to kMaxBlockBytes.
  static FrequentBlocks from_local(std::span<const Block> blocks, Rank rank, std::size_t capacity);

  /// The table of all ranks of a and b, which have none in common. merge(a, b) == merge(b, a).
  /// When there are more than `capacity` blocks the most frequent stay, of equals those with the
  /// smallest fingerprints. Linear in the sizes of both.
  static FrequentBlocks merge(const FrequentBlocks& a, const FrequentBlocks& b,
                              const NodeLayout& layout, std::size_t capacity);

  /// Forgets blocks that only one rank was seen with, which the plan treats alike when they are not
  /// in the table. For the root, before it sends the table to all.
  void drop_unshared();

  /// The table as bytes, for another rank of the same job and build (little-endian, no checksum).
  std::vector<std::byte> encode() const;
  /// The inverse. corruption: the bytes are not a table of this layout and capacity. A table that
  /// is accepted cannot make any plan fail or leave a block on fewer than K nodes, if the
  /// designated ranks have their blocks (which each of them checks).
  static Result<FrequentBlocks> decode(std::span<const std::byte> bytes, const NodeLayout& layout,
                                       std::size_t capacity);

  /// Strictly ascending by before().
  std::span<const Entry> entries() const { return entries_; }
  /// Of entry `index`: one to K ranks, ascending.
  std::span<const Rank> designated(std::size_t index) const {
    const std::size_t first = index == 0 ? 0 : ends_[index - 1];
    return {ranks_.data() + first, ends_[index] - first};
  }
  /// Ascending by rank; ranks without blocks are absent.
  std::span<const Load> loads() const { return loads_; }
  bool operator==(const FrequentBlocks&) const = default;

 private:
  class Merger;

  void append(const Entry& entry, std::span<const Rank> designated);
  Result<void> check(const NodeLayout& layout) const;

  std::vector<Entry> entries_;
  std::vector<std::size_t> ends_;  ///< where each entry's designated ranks end in ranks_
  std::vector<Rank> ranks_;
  std::vector<Load> loads_;
};

}  // namespace belay::dedup
