// SPDX-License-Identifier: Apache-2.0
#include "dedup/replication_plan.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace belay::dedup {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// Finds blocks in a table. Fingerprints are uniform, so that their first bits lead to a place with
/// about one entry; where they are not, a binary search remains.
class PrefixIndex {
 public:
  explicit PrefixIndex(std::span<const FrequentBlocks::Entry> entries) : entries_(entries) {
    const auto bits = static_cast<unsigned>(std::bit_width(entries.size()));
    shift_ = 64 - std::max(bits, 1u);
    firsts_.resize((std::size_t{1} << std::max(bits, 1u)) + 1);
    for (const FrequentBlocks::Entry& entry : entries) ++firsts_[prefix(entry.fingerprint) + 1];
    for (std::size_t i = 1; i < firsts_.size(); ++i) firsts_[i] += firsts_[i - 1];
  }

  std::uint32_t find(const Block& block) const {
    const std::size_t bucket = prefix(block.fingerprint);
    const auto begin = entries_.begin() + firsts_[bucket];
    const auto end = entries_.begin() + firsts_[bucket + 1];
    const auto found = std::lower_bound(
        begin, end, block,
        [](const FrequentBlocks::Entry& a, const Block& b) { return before(a.block(), b); });
    if (found == end || found->block() != block) return kNone;
    return static_cast<std::uint32_t>(found - entries_.begin());
  }

 private:
  std::size_t prefix(const Fingerprint& fingerprint) const { return fingerprint.high >> shift_; }

  std::span<const FrequentBlocks::Entry> entries_;
  unsigned shift_ = 0;
  std::vector<std::uint32_t> firsts_;
};

/// The missing copies of a block, dealt out among its designated ranks. Who begins depends on the
/// block, so that no rank always has one more to send.
class Turns {
 public:
  Turns(const Fingerprint& fingerprint, std::span<const Rank> designated)
      : designated_(designated), first_(fingerprint.low % designated.size()) {}

  Rank sender(std::size_t copy) const { return designated_[(first_ + copy) % designated_.size()]; }

 private:
  std::span<const Rank> designated_;
  std::size_t first_;
};

bool among(std::span<const Rank> ranks, Rank rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

/// Finds who takes the missing copies of a block. Each sender walks the ring from its own place;
/// promises are made in the order of the copies, so that all ranks find the same ones.
class Placement {
 public:
  Placement(const NodeLayout& layout, const Ring& ring, Rank rank)
      : layout_(layout), ring_(ring), rank_(rank) {}

  /// Appends to `holders` the designated ranks and those that are promised a copy: K in all.
  void place(const Fingerprint& fingerprint, std::span<const Rank> designated,
             std::vector<Rank>& holders) {
    nodes_.clear();
    receivers_.clear();
    for (const Rank rank : designated) nodes_.push_back(layout_.node_of(rank));
    holders.insert(holders.end(), designated.begin(), designated.end());
    const Turns turns(fingerprint, designated);
    for (std::size_t copy = 0; nodes_.size() < layout_.copies(); ++copy) {
      const Rank sender = turns.sender(copy);
      const Rank receiver = ring_.next(sender, nodes_);
      holders.push_back(receiver);
      nodes_.push_back(layout_.node_of(receiver));
      if (sender == rank_) receivers_.push_back(receiver);
    }
  }

  /// Who gets the block that was placed last from this rank.
  const std::vector<Rank>& receivers() const { return receivers_; }

 private:
  const NodeLayout& layout_;
  const Ring& ring_;
  Rank rank_;
  std::vector<Node> nodes_;
  std::vector<Rank> receivers_;
};

/// Collects sends by receiver.
class Outbox {
 public:
  explicit Outbox(Rank ranks) : slot_of_(ranks, kNone) {}

  void add(Rank receiver, std::uint32_t block, std::uint32_t length) {
    std::uint32_t& slot = slot_of_[receiver];
    if (slot == kNone) {
      slot = static_cast<std::uint32_t>(sends_.size());
      sends_.push_back({.receiver = receiver});
    }
    sends_[slot].bytes += length;
    sends_[slot].blocks.push_back(block);
  }

  std::vector<ReplicationPlan::Send> in_order_of(const Ring& ring, Rank rank) && {
    const auto distance = [&](const ReplicationPlan::Send& send) {
      return (ring.place_of(send.receiver) + ring.size() - ring.place_of(rank)) % ring.size();
    };
    std::sort(sends_.begin(), sends_.end(),
              [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
    return std::move(sends_);
  }

 private:
  std::vector<std::uint32_t> slot_of_;  ///< by receiver
  std::vector<ReplicationPlan::Send> sends_;
};

}  // namespace

Result<ReplicationPlanner> ReplicationPlanner::make(const NodeLayout& layout,
                                                    const FrequentBlocks& table,
                                                    std::span<const Block> blocks, Rank rank) {
  ReplicationPlanner planner(layout, table, blocks, rank);
  planner.entry_of_.reserve(blocks.size());
  const PrefixIndex index(table.entries());
  for (const Block& block : blocks) planner.entry_of_.push_back(index.find(block));
  BELAY_TRY(planner.check_designated());
  return planner;
}

Result<void> ReplicationPlanner::check_designated() const {
  std::vector<bool> brought(table_->entries().size());
  for (const std::uint32_t entry : entry_of_)
    if (entry != kNone) brought[entry] = true;
  for (std::size_t entry = 0; entry < brought.size(); ++entry)
    if (!brought[entry] && among(table_->designated(entry), rank_))
      return fail(Code::corruption,
                  "the table of frequent blocks counts on rank {} for block {}, which it does not "
                  "bring to this version; the version cannot be kept, the next one may succeed",
                  rank_, to_hex(table_->entries()[entry].fingerprint));
  return {};
}

std::uint64_t ReplicationPlanner::send_bytes() const {
  const std::size_t copies = layout_->copies();
  std::uint64_t bytes = 0;
  for (std::size_t block = 0; block < blocks_.size(); ++block) {
    const std::uint32_t entry = entry_of_[block];
    if (entry == kNone) {
      bytes += (copies - 1) * blocks_[block].length;
      continue;
    }
    const auto designated = table_->designated(entry);
    const Turns turns(blocks_[block].fingerprint, designated);
    for (std::size_t copy = 0; copy < copies - designated.size(); ++copy)
      if (turns.sender(copy) == rank_) bytes += blocks_[block].length;
  }
  return bytes;
}

ReplicationPlan ReplicationPlanner::plan(const Ring& ring) const {
  const std::size_t copies = layout_->copies();
  ReplicationPlan plan;
  plan.copies_ = copies;
  plan.set_of_.reserve(blocks_.size());
  plan.stored_.reserve(blocks_.size());
  Outbox outbox(layout_->ranks());
  Placement placement(*layout_, ring, rank_);
  placement.place({}, {&rank_, 1}, plan.holders_);
  plan.storers_.push_back(1);
  const std::vector<Rank> partners = placement.receivers();

  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    const std::uint32_t length = blocks_[block].length;
    const std::uint32_t entry = entry_of_[block];
    if (entry == kNone) {
      plan.set_of_.push_back(0);
      plan.stored_.push_back(block);
      for (const Rank partner : partners) outbox.add(partner, block, length);
      continue;
    }
    const auto designated = table_->designated(entry);
    plan.set_of_.push_back(static_cast<std::uint32_t>(plan.holders_.size() / copies));
    placement.place(blocks_[block].fingerprint, designated, plan.holders_);
    plan.storers_.push_back(static_cast<std::uint8_t>(designated.size()));
    (among(designated, rank_) ? plan.stored_ : plan.left_out_).push_back(block);
    for (const Rank receiver : placement.receivers()) outbox.add(receiver, block, length);
  }
  plan.sends_ = std::move(outbox).in_order_of(ring, rank_);
  return plan;
}

ReplicationPlan ReplicationPlanner::plan_parity() const {
  const std::size_t copies = layout_->copies();
  ReplicationPlan plan;
  plan.copies_ = copies;
  const auto add_set = [&](std::span<const Rank> storers) {
    plan.holders_.insert(plan.holders_.end(), storers.begin(), storers.end());
    plan.holders_.resize(plan.holders_.size() + copies - storers.size(), storers.front());
    plan.storers_.push_back(static_cast<std::uint8_t>(storers.size()));
  };
  add_set({&rank_, 1});
  for (std::uint32_t block = 0; block < blocks_.size(); ++block) {
    const std::uint32_t entry = entry_of_[block];
    if (entry == kNone) {
      plan.set_of_.push_back(0);
      plan.stored_.push_back(block);
      continue;
    }
    const auto designated = table_->designated(entry);
    const bool natural = designated.size() == copies && layout_->are_enough(designated);
    const Rank one = Turns(blocks_[block].fingerprint, designated).sender(0);
    const auto storers = natural ? designated : std::span<const Rank>(&one, 1);
    plan.set_of_.push_back(static_cast<std::uint32_t>(plan.storers_.size()));
    add_set(storers);
    if (!among(storers, rank_)) {
      plan.left_out_.push_back(block);
      continue;
    }
    plan.stored_.push_back(block);
    if (natural) plan.natural_.push_back(block);
  }
  return plan;
}

}  // namespace belay::dedup
