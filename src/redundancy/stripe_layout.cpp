// SPDX-License-Identifier: Apache-2.0
#include "redundancy/stripe_layout.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <utility>

namespace belay::redundancy {

Result<NodeSets> form_sets(std::uint32_t nodes, const ErasureScheme& scheme) {
  BELAY_TRY(check_scheme(scheme));
  if (nodes < scheme.width())
    return fail(Code::invalid_argument,
                "{} needs {} nodes, and there are {}; use more nodes or a smaller scheme",
                name_of(scheme), scheme.width(), nodes);
  return NodeSets(nodes, Level::erasure(static_cast<std::uint8_t>(scheme.members),
                                        static_cast<std::uint8_t>(scheme.shards)));
}

std::string name_of(const StripePart& part) {
  return part.is_member() ? fmt::format("the member of node {}", part.place)
                          : fmt::format("shard {} of node {}", part.shard, part.place);
}

Result<StripeLayout> StripeLayout::make(const ErasureScheme& scheme,
                                        std::vector<std::uint64_t> member_bytes) {
  BELAY_TRY(check_scheme(scheme));
  if (member_bytes.size() < scheme.width())
    return fail(Code::invalid_argument, "{}: a stripe over {} nodes; it takes {} at least",
                name_of(scheme), member_bytes.size(), scheme.width());
  for (std::size_t place = 0; place < member_bytes.size(); ++place)
    if (member_bytes[place] > kMaxMemberBytes)
      return fail(Code::invalid_argument,
                  "stripe: the member of node {} has {} bytes, more than {}", place,
                  member_bytes[place], kMaxMemberBytes);
  return StripeLayout(scheme, std::move(member_bytes));
}

std::uint64_t StripeLayout::chunk_bytes(std::uint32_t place) const {
  const std::uint64_t share = (member_bytes_[place] + scheme_.members - 1) / scheme_.members;
  return (share + kChunkUnit - 1) / kChunkUnit * kChunkUnit;
}

Range StripeLayout::chunk(std::uint32_t place, std::uint32_t index) const {
  const std::uint64_t all = member_bytes_[place], bytes = chunk_bytes(place);
  const std::uint64_t begin = std::min(all, index * bytes);
  return {begin, std::min(all - begin, bytes)};
}

StripePart StripeLayout::part_at(std::uint32_t codeword, std::uint32_t position) const {
  const std::uint32_t place = (codeword + position) % nodes();
  if (position < scheme_.members) return {place, StripePart::kMember};
  return {place, position - scheme_.members};
}

Range StripeLayout::range_at(std::uint32_t codeword, std::uint32_t position) const {
  if (position >= scheme_.members) return {0, shard_bytes(codeword)};
  return chunk((codeword + position) % nodes(), position);
}

std::uint64_t StripeLayout::shard_bytes(std::uint32_t codeword) const {
  std::uint64_t longest = 0;
  for (std::uint32_t position = 0; position < scheme_.members; ++position)
    longest = std::max(longest, range_at(codeword, position).length);
  return longest;
}

std::uint64_t StripeLayout::bytes_of(const StripePart& part) const {
  if (part.is_member()) return member_bytes_[part.place];
  return shard_bytes(codeword_with(part.place, scheme_.members + part.shard));
}

std::vector<StripeLayout::Piece> StripeLayout::contributions(std::uint32_t place) const {
  std::vector<Piece> pieces;
  for (std::uint32_t index = 0; index < scheme_.members; ++index)
    if (const Range range = chunk(place, index); range.length > 0)
      pieces.push_back({codeword_with(place, index), index, range});
  return pieces;
}

std::vector<StripeLayout::Piece> StripeLayout::shards(std::uint32_t place) const {
  std::vector<Piece> pieces;
  for (std::uint32_t position = scheme_.members; position < scheme_.width(); ++position) {
    const std::uint32_t codeword = codeword_with(place, position);
    pieces.push_back({codeword, position, {0, shard_bytes(codeword)}});
  }
  return pieces;
}

StripeLayout::Piece StripeLayout::piece_with(const StripePart& part, std::uint64_t offset) const {
  const std::uint32_t position = part.is_member()
                                     ? static_cast<std::uint32_t>(offset / chunk_bytes(part.place))
                                     : scheme_.members + part.shard;
  const std::uint32_t codeword = codeword_with(part.place, position);
  return {codeword, position, range_at(codeword, position)};
}

Result<StripeLayout> layout_of(const Stripe& stripe) {
  std::vector<std::uint64_t> bytes;
  for (const StripeMember& member : stripe.members) bytes.push_back(member.bytes());
  return StripeLayout::make({stripe.level.members, stripe.level.shards}, std::move(bytes));
}

}  // namespace belay::redundancy
