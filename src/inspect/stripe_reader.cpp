// SPDX-License-Identifier: Apache-2.0
#include "inspect/stripe_reader.hpp"

#include "base/try.hpp"
#include "store/verified_range.hpp"

namespace belay::inspect {

using redundancy::Range;
using redundancy::StripeLayout;
using redundancy::StripePart;

std::vector<StripeLayout::Piece> StripeReader::pieces() const {
  if (wanted_.is_member()) return stripe_.layout.contributions(wanted_.place);
  return {stripe_.layout.shards(wanted_.place)[wanted_.shard]};
}

StripeReader::Part StripeReader::open(const StoreView& view, const StripePart& part) const {
  Part opened;
  if (part.is_member()) {
    const StripeMember& member = stripe_.stripe.members[part.place];
    auto segment = store::SegmentFile::open(view.tier(0), stripe_.member(part.place),
                                            stripe_.origin.store, member.file_bytes);
    if (!segment) {
      opened.lost = segment.error();
      return opened;
    }
    opened.segment = *std::move(segment);
    const format::SegmentHeader& header = opened.segment->header();
    opened.hasher = fingerprint::make_hasher(header.hash, header.origin.seed);
    if (!opened.hasher) opened.lost = Error(Code::corruption, "its hash is not known here");
    return opened;
  }
  const auto node = stripe_.shards[part.place][part.shard];
  if (!node) {
    opened.lost = Error(Code::not_found, "is missing or damaged");
    return opened;
  }
  store::Tier& place = store::place_in(view.tier(*node), view.nodes()[*node].directory);
  auto shard = store::ShardFile::open(place, stripe_.shard(part.shard), stripe_.origin.store);
  if (shard)
    opened.shard = *std::move(shard);
  else
    opened.lost = shard.error();
  return opened;
}

Result<std::unique_ptr<StripeReader>> StripeReader::make(const StoreView& view,
                                                         const StripeView& stripe,
                                                         const StripePart& wanted) {
  std::unique_ptr<StripeReader> reader(new StripeReader(stripe, wanted));
  const StripeLayout& layout = stripe.layout;
  for (const auto& piece : reader->pieces())
    for (std::uint32_t position = 0; position < layout.scheme().width(); ++position) {
      const StripePart part = layout.part_at(piece.codeword, position);
      if (part == wanted || layout.range_at(piece.codeword, position).length == 0) continue;
      const auto [entry, is_new] = reader->parts_.try_emplace(place_of(part));
      if (is_new) entry->second = reader->open(view, part);
    }
  BELAY_ASSIGN(reader->rebuilder_,
               redundancy::StripeRebuilder::make(
                   layout, {},
                   [self = reader.get()](const StripePart& part, std::uint64_t offset,
                                         std::span<std::byte> into) {
                     return self->read_part(part, offset, into);
                   }));
  return reader;
}

Result<void> StripeReader::read_part(const StripePart& part, std::uint64_t offset,
                                     std::span<std::byte> into) {
  const auto found = parts_.find(place_of(part));
  if (found == parts_.end()) return fail(Code::not_found, "is no part of the codeword");
  Part& opened = found->second;
  if (opened.lost) return fail(Code::not_found, "{}", opened.lost->message());
  if (opened.shard) return opened.shard->read(offset, into);
  return store::read_member(
      *opened.segment, stripe_.stripe.members[part.place],
      [&](std::span<const std::byte> block) { return opened.hasher->hash(block); }, offset, into);
}

Result<void> StripeReader::read(std::uint64_t offset, std::span<std::byte> into) {
  return rebuilder_->rebuild(wanted_, offset, into);
}

std::vector<Range> StripeReader::lost_ranges() const {
  const StripeLayout& layout = stripe_.layout;
  std::vector<Range> lost;
  for (const auto& piece : pieces()) {
    std::uint32_t left = 0;
    for (std::uint32_t position = 0; position < layout.scheme().width(); ++position) {
      const StripePart part = layout.part_at(piece.codeword, position);
      if (part == wanted_) continue;
      // Of a member without bytes here zeros are known; a shard is never shorter than the piece.
      const auto found = parts_.find(place_of(part));
      left += found == parts_.end() || !found->second.lost ? 1 : 0;
    }
    if (left < layout.scheme().members) lost.push_back(piece.range);
  }
  return lost;
}

}  // namespace belay::inspect
