// SPDX-License-Identifier: Apache-2.0
#include "session/version_plan.hpp"

#include "base/try.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace belay::session {
namespace {

using dedup::FrequentBlocks;

/// One step up the tree: half of the ranks give their tables to the other half.
Result<void> merge_step(ranks::Group& group, const dedup::NodeLayout& layout, std::size_t capacity,
                        Rank step, FrequentBlocks& table) {
  const Rank rank = group.rank();
  if (rank % (2 * step) == step) {
    const auto bytes = table.encode();
    const ranks::Message message{rank - step, bytes};
    BELAY_TRY(group.exchange({&message, 1}, {}));
  } else if (rank % (2 * step) == 0 && step < group.size() - rank) {
    const Rank from = rank + step;
    BELAY_ASSIGN(const auto received, group.exchange({}, {&from, 1}));
    BELAY_ASSIGN(const auto theirs, FrequentBlocks::decode(received.front(), layout, capacity));
    table = FrequentBlocks::merge(table, theirs, layout, capacity);
  }
  return {};
}

/// Collective. The blocks that several ranks bring, the same table on all.
Result<FrequentBlocks> merge_tables(ranks::Group& group, const dedup::NodeLayout& layout,
                                    std::span<const dedup::Block> brought, std::size_t capacity) {
  auto table = FrequentBlocks::from_local(brought, group.rank(), capacity);
  for (Rank step = 1; step < group.size(); step *= 2)
    BELAY_TRY(merge_step(group, layout, capacity, step, table));
  std::vector<std::byte> bytes;
  if (group.rank() == 0) {
    table.drop_unshared();
    bytes = table.encode();
  }
  std::uint64_t count = bytes.size();
  BELAY_TRY(group.broadcast(std::as_writable_bytes(std::span(&count, 1)), 0));
  bytes.resize(count);
  BELAY_TRY(group.broadcast(bytes, 0));
  return FrequentBlocks::decode(bytes, layout, capacity);
}

Result<std::vector<std::uint64_t>> gather_numbers(ranks::Group& group, std::uint64_t mine) {
  BELAY_ASSIGN(const auto all, group.gather(std::as_bytes(std::span(&mine, 1))));
  std::vector<std::uint64_t> numbers;
  for (const auto& bytes : all) {
    format::WireReader reader(bytes);
    numbers.push_back(reader.field<std::uint64_t>());
  }
  return numbers;
}

Share share_of(const dedup::ReplicationPlan& plan, std::span<const dedup::Block> brought) {
  Share share;
  for (const std::uint32_t block : plan.stored()) share.payload_bytes += brought[block].length;
  for (const std::uint32_t block : plan.natural()) share.natural_bytes += brought[block].length;
  if (!plan.stored().empty())
    share.file_bytes = format::segment_file_bytes(share.payload_bytes, 1, plan.stored().size());
  for (const auto& send : plan.sends()) share.parcels.push_back({send.receiver, send.bytes});
  return share;
}

Result<std::vector<Share>> gather_shares(ranks::Group& group, const Share& mine) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(mine.file_bytes);
  writer.pair(mine.payload_bytes, mine.natural_bytes);
  for (const Parcel& parcel : mine.parcels) {
    writer.field(parcel.receiver);
    writer.field(parcel.bytes);
  }
  BELAY_ASSIGN(const auto all, group.gather(bytes));
  std::vector<Share> shares;
  for (const auto& theirs : all) {
    format::WireReader reader(theirs);
    Share& share = shares.emplace_back();
    share.file_bytes = reader.field<std::uint64_t>();
    share.payload_bytes = reader.field<std::uint64_t>();
    share.natural_bytes = reader.field<std::uint64_t>();
    while (reader.remaining() > 0) {
      const auto receiver = reader.field<Rank>();
      share.parcels.push_back({receiver, reader.field<std::uint64_t>()});
    }
  }
  return shares;
}

std::vector<Rank> other_storers(const dedup::ReplicationPlan& plan, std::size_t blocks, Rank rank) {
  std::set<Rank> storers;
  for (std::uint32_t block = 0; block < blocks; ++block)
    for (const Rank storer : plan.storers(block))
      if (storer != rank) storers.insert(storer);
  return {storers.begin(), storers.end()};
}

}  // namespace

std::vector<std::uint32_t> VersionPlan::in_order() const {
  std::vector<std::uint32_t> order;
  order.reserve(blocks.stored().size());
  std::set_difference(blocks.stored().begin(), blocks.stored().end(), blocks.natural().begin(),
                      blocks.natural().end(), std::back_inserter(order));
  order.insert(order.end(), blocks.natural().begin(), blocks.natural().end());
  return order;
}

std::vector<Rank> VersionPlan::manifest_keepers(const dedup::NodeLayout& layout, Rank owner) const {
  std::vector<Rank> keepers;
  std::vector<dedup::Node> taken{layout.node_of(owner)};
  while (taken.size() < layout.copies()) {
    keepers.push_back(ring.next(owner, taken));
    taken.push_back(layout.node_of(keepers.back()));
  }
  return keepers;
}

std::vector<std::uint64_t> VersionPlan::bytes_to(Rank receiver) const {
  std::vector<std::uint64_t> bytes(shares.size());
  for (std::size_t sender = 0; sender < shares.size(); ++sender)
    for (const Parcel& parcel : shares[sender].parcels)
      if (parcel.receiver == receiver) bytes[sender] += parcel.bytes;
  return bytes;
}

Result<VersionPlan> plan_version(ranks::Group& group, const dedup::NodeLayout& layout,
                                 const Settings& settings, const Level& level,
                                 std::span<const dedup::Block> brought) {
  const Dedup mode = settings.dedup_of(level);
  const bool shuffled = mode == Dedup::collective;
  FrequentBlocks table;
  if (shuffled || mode == Dedup::collective_unshuffled) {
    BELAY_ASSIGN(table, merge_tables(group, layout, brought, settings.dedup_table));
  }
  BELAY_ASSIGN(
      const auto planner,
      vote::agree_on(group, dedup::ReplicationPlanner::make(layout, table, brought, group.rank())));
  const bool parity = level.has_parity();
  auto ring = dedup::Ring::unshuffled(layout);
  if (shuffled && !parity) {
    BELAY_ASSIGN(const auto send_bytes, gather_numbers(group, planner.send_bytes()));
    ring = dedup::Ring::shuffled(layout, send_bytes);
  }
  VersionPlan plan{std::move(ring), {}, {}, {}};
  plan.blocks = parity ? planner.plan_parity() : planner.plan(plan.ring);
  BELAY_ASSIGN(plan.shares, gather_shares(group, share_of(plan.blocks, brought)));
  plan.counted_on = other_storers(plan.blocks, brought.size(), group.rank());
  return plan;
}

}  // namespace belay::session
