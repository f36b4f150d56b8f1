// SPDX-License-Identifier: Apache-2.0
#include "dedup/frequent_blocks.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <tuple>

namespace belay::dedup {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Entries of two tables that are the same block; kNone where one has it not.
struct Pair {
  std::uint32_t a = kNone;
  std::uint32_t b = kNone;
  std::uint32_t frequency = 0;
  bool contested = false;  ///< not all of both can stay designated
};

/// All blocks of both tables in order.
std::vector<Pair> pair_up(std::span<const FrequentBlocks::Entry> a,
                          std::span<const FrequentBlocks::Entry> b) {
  std::vector<Pair> pairs;
  pairs.reserve(a.size() + b.size());
  std::uint32_t i = 0;
  std::uint32_t j = 0;
  while (i < a.size() && j < b.size()) {
    const bool in_a = !before(b[j].block(), a[i].block());
    const bool in_b = !before(a[i].block(), b[j].block());
    pairs.push_back({.a = in_a ? i : kNone,
                     .b = in_b ? j : kNone,
                     .frequency = a[i].frequency * in_a + b[j].frequency * in_b});
    i += in_a;
    j += in_b;
  }
  for (; i < a.size(); ++i) pairs.push_back({.a = i, .frequency = a[i].frequency});
  for (; j < b.size(); ++j) pairs.push_back({.b = j, .frequency = b[j].frequency});
  return pairs;
}

/// At least the `capacity` smallest. Fingerprints are uniform, so that a bound on their first bits
/// leaves few too many; where it leaves too few they are not, and all are candidates.
std::vector<Block> smallest_candidates(std::span<const Block> blocks, std::size_t capacity) {
  const double share =
      static_cast<double>(capacity + capacity / 16 + 64) / static_cast<double>(blocks.size());
  std::vector<Block> candidates;
  if (share < 1) {
    const auto bound = static_cast<std::uint64_t>(share * 0x1p64);
    candidates.reserve(capacity + capacity / 8 + 64);
    for (const Block& block : blocks)
      if (block.fingerprint.high < bound) candidates.push_back(block);
  }
  if (share >= 1 || candidates.size() < capacity) candidates.assign(blocks.begin(), blocks.end());
  return candidates;
}

}  // namespace

void FrequentBlocks::append(const Entry& entry, std::span<const Rank> designated) {
  entries_.push_back(entry);
  for (const Rank rank : designated) ranks_.push_back(rank);
  ends_.push_back(ranks_.size());
}

FrequentBlocks FrequentBlocks::from_local(std::span<const Block> blocks, Rank rank,
                                          std::size_t capacity) {
  FrequentBlocks table;
  if (blocks.empty()) return table;
  // Blocks that do not fit are this rank's to store, so they are load as well.
  Load load{.rank = rank};
  for (const Block& block : blocks) load.bytes += block.length;
  table.loads_.push_back(load);
  std::vector<Block> sorted = smallest_candidates(blocks, capacity);
  if (sorted.size() > capacity) {
    const auto cut = sorted.begin() + static_cast<std::ptrdiff_t>(capacity);
    std::nth_element(sorted.begin(), cut, sorted.end(), Before{});
    sorted.erase(cut, sorted.end());
  }
  std::sort(sorted.begin(), sorted.end(), Before{});
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  table.entries_.reserve(sorted.size());
  table.ends_.reserve(sorted.size());
  table.ranks_.reserve(sorted.size());
  for (const Block& block : sorted) table.append({block.fingerprint, block.length, 1}, {&rank, 1});
  return table;
}

/// One merge. Loads lie by rank meanwhile.
class FrequentBlocks::Merger {
 public:
  Merger(const FrequentBlocks& a, const FrequentBlocks& b, const NodeLayout& layout)
      : a_(a), b_(b), layout_(layout), pairs_(pair_up(a.entries_, b.entries_)) {
    load_.resize(layout.ranks());
    for (Pair& pair : pairs_) pair.frequency = std::min(pair.frequency, layout.ranks());
    for (const FrequentBlocks* table : {&a, &b})
      for (const Load& load : table->loads_) load_[load.rank] += load.bytes;
  }

  FrequentBlocks run(std::size_t capacity) {
    if (pairs_.size() > capacity) keep_most_frequent(capacity);
    set_contested_aside();
    FrequentBlocks merged;
    merged.entries_.reserve(pairs_.size());
    merged.ends_.reserve(pairs_.size());
    merged.ranks_.reserve(a_.ranks_.size() + b_.ranks_.size());
    for (const Pair& pair : pairs_) {
      if (pair.b == kNone)
        merged.append(a_.entries_[pair.a], a_.designated(pair.a));
      else if (pair.a == kNone)
        merged.append(b_.entries_[pair.b], b_.designated(pair.b));
      else
        append_both(merged, pair);
    }
    put_loads(merged);
    return merged;
  }

 private:
  void keep_most_frequent(std::size_t capacity) {
    std::vector<std::size_t> pairs_with(layout_.ranks() + std::size_t{1});
    for (const Pair& pair : pairs_) ++pairs_with[pair.frequency];
    std::uint32_t least = layout_.ranks();
    std::size_t room = capacity;  // for pairs of just the least frequency, in their order
    for (; pairs_with[least] <= room; --least) room -= pairs_with[least];
    std::erase_if(pairs_, [&](const Pair& pair) {
      if (pair.frequency != least) return pair.frequency < least;
      if (room == 0) return true;
      --room;
      return false;
    });
  }

  bool contested(const Pair& pair) const {
    if (pair.a == kNone || pair.b == kNone) return false;
    const auto a = a_.designated(pair.a);
    const auto b = b_.designated(pair.b);
    if (a.size() + b.size() > layout_.copies()) return true;
    return std::any_of(a.begin(), a.end(), [&](Rank of_a) {
      return std::any_of(b.begin(), b.end(),
                         [&](Rank of_b) { return layout_.node_of(of_a) == layout_.node_of(of_b); });
    });
  }

  /// Contested blocks are nobody's load until they are decided. Else a rank that comes late, with
  /// all of its blocks, would lose every one of them until it has as few as the others, and the
  /// ranks that it met by then would keep too many.
  void set_contested_aside() {
    for (Pair& pair : pairs_) {
      pair.contested = contested(pair);
      if (!pair.contested) continue;
      const std::uint32_t length = a_.entries_[pair.a].length;
      for (const Rank rank : a_.designated(pair.a)) lighten(rank, length);
      for (const Rank rank : b_.designated(pair.b)) lighten(rank, length);
    }
  }

  void lighten(Rank rank, std::uint32_t length) {
    load_[rank] -= std::min<std::uint64_t>(load_[rank], length);
  }

  void append_both(FrequentBlocks& merged, const Pair& pair) {
    const auto a = a_.designated(pair.a);
    const auto b = b_.designated(pair.b);
    candidates_.clear();
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(candidates_));
    Entry entry = a_.entries_[pair.a];
    entry.frequency = pair.frequency;
    if (pair.contested) {
      drop_shared_nodes();
      while (candidates_.size() > layout_.copies())
        drop(layout_.sets() > 1 ? most_scattered(entry.fingerprint) : most_loaded());
      for (const Rank rank : candidates_) load_[rank] += entry.length;
    }
    merged.append(entry, candidates_);
  }

  /// A second copy on a node survives nothing that the first does not.
  void drop_shared_nodes() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      for (std::size_t j = i + 1; j < candidates_.size(); ++j) {
        if (layout_.node_of(candidates_[i]) != layout_.node_of(candidates_[j])) continue;
        // Each table has at most one rank on a node, so that there is no third.
        const bool first = load_[candidates_[i]] > load_[candidates_[j]];
        drop(first ? i-- : j);
        break;
      }
    }
  }

  /// Copies of a block count where K nodes of one set have them. So a set that has as many stays,
  /// else the one that the block chooses, as it does in all tables, and larger ones before smaller.
  std::size_t most_scattered(const Fingerprint& fingerprint) const {
    const auto worth = [&](Rank rank) {
      const std::uint32_t set = layout_.set_of(rank);
      const auto there = std::count_if(candidates_.begin(), candidates_.end(),
                                       [&](Rank other) { return layout_.set_of(other) == set; });
      return std::tuple(there >= static_cast<std::ptrdiff_t>(layout_.copies()),
                        set == fingerprint.low % layout_.sets(), there, set, ~load_[rank]);
    };
    std::size_t least = 0;
    for (std::size_t i = 1; i < candidates_.size(); ++i)
      if (worth(candidates_[i]) <= worth(candidates_[least])) least = i;
    return least;
  }

  /// Of equals the last, so that the result depends on ranks only, not on the order of a and b.
  std::size_t most_loaded() const {
    std::size_t most = 0;
    for (std::size_t i = 1; i < candidates_.size(); ++i)
      if (load_[candidates_[i]] >= load_[candidates_[most]]) most = i;
    return most;
  }

  void drop(std::size_t index) {
    candidates_.erase(candidates_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void put_loads(FrequentBlocks& merged) const {
    merged.loads_.reserve(a_.loads_.size() + b_.loads_.size());
    std::set_union(a_.loads_.begin(), a_.loads_.end(), b_.loads_.begin(), b_.loads_.end(),
                   std::back_inserter(merged.loads_),
                   [](const Load& x, const Load& y) { return x.rank < y.rank; });
    for (Load& load : merged.loads_) load.bytes = load_[load.rank];
  }

  const FrequentBlocks& a_;
  const FrequentBlocks& b_;
  const NodeLayout& layout_;
  std::vector<Pair> pairs_;
  std::vector<std::uint64_t> load_;
  std::vector<Rank> candidates_;
};

FrequentBlocks FrequentBlocks::merge(const FrequentBlocks& a, const FrequentBlocks& b,
                                     const NodeLayout& layout, std::size_t capacity) {
  assert(a.entries_.size() + b.entries_.size() < kNone);
  return Merger(a, b, layout).run(capacity);
}

void FrequentBlocks::drop_unshared() {
  FrequentBlocks kept;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (entries_[i].frequency > 1) kept.append(entries_[i], designated(i));
  kept.loads_ = std::move(loads_);
  *this = std::move(kept);
}

}  // namespace belay::dedup
