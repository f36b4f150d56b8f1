// SPDX-License-Identifier: Apache-2.0
#include "simulator/stripe_walk.hpp"

#include "base/try.hpp"
#include "format/segment.hpp"
#include "redundancy/stripe_rebuild.hpp"
#include "store/tier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

namespace belay::simulator {

namespace {

using Image = std::vector<std::byte>;

/// What a segment gives to its stripe.
Image without_gap(const Image& file, const StripeMember& member) {
  Image image = file;
  const auto begin = image.begin() + static_cast<std::ptrdiff_t>(member.gap_begin);
  image.erase(begin, begin + static_cast<std::ptrdiff_t>(member.gap_bytes));
  return image;
}

/// Does a damaged block lie in this range of the file?
bool is_bad(const FoundSegment& segment, std::uint64_t begin, std::uint64_t end) {
  for (std::size_t i = 0; i < segment.blocks.size(); ++i)
    if (!segment.good[i] && segment.blocks[i].offset < end && segment.blocks[i].end() > begin)
      return true;
  return false;
}

/// The blocks that a member had, from its header and end.
store::StoredBlocks blocks_of(const Image& header_bytes, const Image& index_bytes,
                              const format::SegmentFooter& footer, std::uint64_t gap_begin) {
  store::StoredBlocks blocks;
  const auto header = format::decode_segment_header(header_bytes);
  if (!header) return blocks;
  const auto index = format::decode_segment_index(index_bytes, footer, *header);
  if (!index) return blocks;
  std::uint64_t offset = format::kSegmentHeaderBytes;
  for (const format::IndexEntry& entry : index->entries) {
    if (offset >= gap_begin) break;
    blocks.push_back({entry.fingerprint, entry.length, offset});
    offset += entry.length;
  }
  return blocks;
}

}  // namespace

void StripeWalk::add_shard(os::MemoryFiles& files, const std::string& path, std::size_t node,
                           const SegmentId& id) {
  shard_paths_.emplace(id, path);
  const auto tier = store::make_local_tier(files, path.substr(0, path.rfind('/')));
  auto shard = store::ShardFile::open(*tier, id, {});
  if (!shard) return;
  const auto& description = shard->description();
  Known& known = stripes_[{id.key, description.stripe.number}];
  known.stripe = description.stripe;
  const std::pair at(description.seat, description.index);
  known.shards.emplace(at, Shard{node, std::move(*shard)});
}

void StripeWalk::complete(std::set<SegmentId>& counted_on) {
  std::set<StripeId> alive;
  for (const auto& [id, known] : stripes_) {
    std::vector<SegmentId> members;
    for (const StripeMember& member : known.stripe.members)
      if (!member.empty()) members.push_back({id.first, member.rank});
    if (std::none_of(members.begin(), members.end(),
                     [&](const SegmentId& member) { return counted_on.contains(member); }))
      continue;
    alive.insert(id);
    counted_on.insert(members.begin(), members.end());
  }
  for (const auto& [id, path] : shard_paths_)
    if (stripes_.contains({id.key, stripe_of_shard(id)}) &&
        !alive.contains({id.key, stripe_of_shard(id)}))
      dead_.emplace(id, path);
}

const FoundSegment* StripeWalk::member(const Stripe& stripe, std::uint32_t seat) const {
  const StripeMember& member = stripe.members[seat];
  const auto found = segments_.find({stripe.key, member.rank});
  if (found == segments_.end() || found->second.bytes.size() != member.file_bytes) return nullptr;
  return &found->second;
}

bool StripeWalk::seats_are_apart(const Known& known) const {
  std::map<std::size_t, std::uint32_t> seat_of;  // by node
  const auto sits = [&](std::size_t node, std::uint32_t seat) {
    return seat_of.emplace(node, seat).first->second == seat;
  };
  for (std::uint32_t seat = 0; seat < known.stripe.seats(); ++seat)
    if (const FoundSegment* found = member(known.stripe, seat); found && !sits(found->node, seat))
      return false;
  return std::all_of(known.shards.begin(), known.shards.end(),
                     [&](const auto& entry) { return sits(entry.second.node, entry.first.first); });
}

bool StripeWalk::members_are_good(const Stripe& stripe) const {
  for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat) {
    if (stripe.members[seat].empty()) continue;
    const FoundSegment* const found = member(stripe, seat);
    if (!found || is_bad(*found, 0, stripe.members[seat].gap_begin)) return false;
  }
  return true;
}

bool StripeWalk::shards_are_good(Known& known) const {
  if (known.shards.size() != std::size_t{known.stripe.seats()} * known.stripe.level.shards)
    return false;
  return std::all_of(known.shards.begin(), known.shards.end(), [](auto& entry) {
    Image parity(entry.second.file.description().parity_bytes);
    return entry.second.file.read(0, parity).has_value();
  });
}

/// REQUIRES: members and shards are good.
bool StripeWalk::parity_is_right(Known& known, const redundancy::StripeLayout& layout) const {
  const auto code = redundancy::ErasureCode::make(layout.scheme());
  std::vector<std::vector<Image>> made(layout.nodes());  // by codeword
  for (std::uint32_t codeword = 0; codeword < layout.nodes(); ++codeword)
    made[codeword].assign(layout.scheme().shards, Image(layout.shard_bytes(codeword)));
  for (std::uint32_t seat = 0; seat < layout.nodes(); ++seat) {
    const FoundSegment* const found = member(known.stripe, seat);
    if (!found) continue;
    const Image image = without_gap(found->bytes, known.stripe.members[seat]);
    for (const auto& [codeword, position, range] : layout.contributions(seat)) {
      std::vector<std::span<std::byte>> shards(made[codeword].begin(), made[codeword].end());
      code->add_member(position, std::span(image).subspan(range.offset, range.length), shards);
    }
  }
  for (auto& [at, shard] : known.shards) {
    const auto piece = layout.shards(at.first)[at.second];
    Image parity(shard.file.description().parity_bytes);
    if (!shard.file.read(0, parity) || parity != made[piece.codeword][at.second]) return false;
  }
  return true;
}

Result<void> StripeWalk::read(Known& known, const redundancy::StripePart& part,
                              std::uint64_t offset, std::span<std::byte> into) const {
  if (!part.is_member()) {
    const auto shard = known.shards.find({part.place, part.shard});
    if (shard == known.shards.end()) return fail(Code::not_found, "no shard");
    return shard->second.file.read(offset, into);
  }
  const FoundSegment* const found = member(known.stripe, part.place);
  if (!found) return fail(Code::not_found, "no member");
  const StripeMember& shape = known.stripe.members[part.place];
  for (std::size_t i = 0; i < into.size(); ++i) {
    const std::uint64_t at = offset + i;
    into[i] = found->bytes[at < shape.gap_begin ? at : at + shape.gap_bytes];
  }
  const std::uint64_t end = std::min(offset + into.size(), shape.gap_begin);
  if (offset < end && is_bad(*found, offset, end)) return fail(Code::corruption, "bad block");
  return {};
}

void StripeWalk::give_back(Known& known, const redundancy::StripeLayout& layout, std::uint32_t seat,
                           const Protected& found) const {
  const StripeMember& shape = known.stripe.members[seat];
  auto rebuilder = redundancy::StripeRebuilder::make(
      layout, {},
      [&](const redundancy::StripePart& part, std::uint64_t offset, std::span<std::byte> into) {
        return read(known, part, offset, into);
      });
  if (!rebuilder) return;
  const auto take = [&](std::uint64_t offset, std::uint64_t bytes) -> std::optional<Image> {
    Image image(bytes);
    if (!rebuilder->rebuild({seat}, offset, image)) return {};
    return image;
  };
  const auto header = take(0, format::kSegmentHeaderBytes);
  const auto end = take(shape.bytes() - format::kSegmentFooterBytes, format::kSegmentFooterBytes);
  if (!header || !end) return;
  const auto footer = format::decode_segment_footer(*end, shape.file_bytes);
  if (!footer || footer->index_offset < shape.gap_begin + shape.gap_bytes) return;
  const auto index = take(footer->index_offset - shape.gap_bytes,
                          shape.file_bytes - format::kSegmentFooterBytes - footer->index_offset);
  const auto decoded = format::decode_segment_header(*header);
  if (!index || !decoded) return;
  const auto hasher = fingerprint::make_hasher(decoded->hash, decoded->origin.seed);
  for (const auto& block : blocks_of(*header, *index, *footer, shape.gap_begin))
    if (const auto bytes = take(block.offset, block.length);
        bytes && hasher->hash(*bytes) == block.fingerprint)
      found({known.stripe.key, shape.rank}, block, 0);
}

std::vector<std::string> StripeWalk::judge(const Protected& found) {
  std::vector<std::string> wrong;
  for (auto& [id, known] : stripes_) {
    const Stripe& stripe = known.stripe;
    const auto layout = redundancy::layout_of(stripe);
    if (!layout) continue;
    const bool good = members_are_good(stripe) && shards_are_good(known);
    if (good && !parity_is_right(known, *layout))
      wrong.push_back(fmt::format("stripe {} of version {}", id.second, id.first.version));
    if (good && seats_are_apart(known)) {
      for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat)
        if (const FoundSegment* const segment = member(stripe, seat))
          for (const store::StoredBlock& block : segment->blocks)
            if (block.offset < stripe.members[seat].gap_begin)
              found({stripe.key, stripe.members[seat].rank}, block, stripe.level.shards);
      continue;
    }
    for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat)
      if (!stripe.members[seat].empty()) give_back(known, *layout, seat, found);
  }
  return wrong;
}

}  // namespace belay::simulator
