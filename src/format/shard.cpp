// SPDX-License-Identifier: Apache-2.0
#include "format/shard.hpp"

#include "format/checksum.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"

#include <set>

namespace belay::format {
namespace {

constexpr std::string_view kShardMagic = "BELAYSHD";
constexpr std::string_view kShardFooterMagic = "DHSYALEB";
constexpr std::size_t kDescriptionFixedBytes = 96;
constexpr std::size_t kMemberBytes = 32;
constexpr std::uint64_t kDescriptionAlignment = 64;
constexpr std::size_t kFooterReservedBytes = 16;

std::uint64_t units_of(std::uint64_t parity_bytes) {
  return (parity_bytes + kShardUnit - 1) / kShardUnit;
}

Result<void> check_member(const StripeMember& member, Rank ranks, std::set<Rank>& seen) {
  if (member.empty()) {
    if (member != StripeMember{})
      return fail(Code::corruption, "a node without a member gives {} bytes", member.file_bytes);
    return {};
  }
  if (member.rank >= ranks || !seen.insert(member.rank).second)
    return fail(Code::corruption, "rank {} of {} is a member, or twice", member.rank, ranks);
  if (member.file_bytes == 0 || member.file_bytes % kFileAlignment != 0 ||
      member.gap_begin > member.file_bytes ||
      member.gap_bytes > member.file_bytes - member.gap_begin)
    return fail(Code::corruption, "the member of rank {}: {} bytes with a gap of {} at {}",
                member.rank, member.file_bytes, member.gap_bytes, member.gap_begin);
  return {};
}

Result<void> check_description(const ShardDescription& description) {
  const Stripe& stripe = description.stripe;
  const Origin& origin = description.origin;
  if (origin.rank != 0 || origin.ranks == 0)
    return fail(Code::corruption, "it is of rank {} of {}", origin.rank, origin.ranks);
  if (stripe.level.members == 0 || stripe.level.shards == 0 ||
      stripe.seats() < stripe.level.least_nodes())
    return fail(Code::corruption, "{} has {} seats", name_of(stripe.level), stripe.seats());
  if (description.seat >= stripe.seats() || description.index >= stripe.level.shards)
    return fail(Code::corruption, "shard {} of seat {} is none of {} with {} seats",
                description.index, description.seat, name_of(stripe.level), stripe.seats());
  std::set<Rank> seen;
  for (const StripeMember& member : stripe.members)
    BELAY_TRY(check_member(member, origin.ranks, seen));
  return {};
}

}  // namespace

std::vector<std::byte> encode_shard_end(const ShardDescription& description) {
  const Stripe& stripe = description.stripe;
  const std::uint64_t begin = round_up(description.parity_bytes, kDescriptionAlignment);
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  writer.zeros(begin - description.parity_bytes);
  const std::size_t start = bytes.size();
  writer.start(kShardMagic, kCopiesFormat);
  writer.field(stripe.number);
  put_origin(writer, description.origin);
  writer.field(description.parity_bytes);
  writer.field(description.seat);
  writer.field(static_cast<std::uint32_t>(description.index));
  writer.field(stripe.seats());
  writer.field(stripe.level.members);
  writer.field(stripe.level.shards);
  writer.zeros(kDescriptionFixedBytes - (bytes.size() - start));
  for (const StripeMember& member : stripe.members) {
    writer.field(member.rank);
    writer.zeros(4);
    writer.field(member.file_bytes);
    writer.field(member.gap_begin);
    writer.field(member.gap_bytes);
  }
  for (const std::uint64_t checksum : description.checksums) writer.field(checksum);
  const std::uint64_t size = bytes.size() - start;
  const std::uint64_t checksum = checksum64(std::span(bytes).subspan(start));
  const std::uint64_t file_bytes = round_up(begin + size + kShardFooterBytes, kFileAlignment);
  writer.zeros(file_bytes - kShardFooterBytes - (begin + size));
  const std::size_t footer = bytes.size();
  writer.text(kShardFooterMagic);
  writer.field(begin);
  writer.field(size);
  writer.field(checksum);
  writer.zeros(kFooterReservedBytes);
  writer.field(file_bytes);
  writer.field(checksum64(std::span(bytes).subspan(footer)));
  return bytes;
}

Result<ShardFooter> decode_shard_footer(std::span<const std::byte> bytes,
                                        std::uint64_t file_bytes) {
  if (bytes.size() != kShardFooterBytes || file_bytes < kFileAlignment ||
      file_bytes % kFileAlignment != 0)
    return fail(Code::corruption, "a shard cannot have {} bytes", file_bytes);
  WireReader reader(bytes);
  if (reader.text(kMagicBytes) != kShardFooterMagic) return damaged("footer");
  ShardFooter footer;
  footer.description_offset = reader.field<std::uint64_t>();
  footer.description_bytes = reader.field<std::uint64_t>();
  footer.checksum = reader.field<std::uint64_t>();
  const bool zeros = reader.zeros(kFooterReservedBytes);
  const auto size = reader.field<std::uint64_t>();
  if (reader.field<std::uint64_t>() != checksum64(bytes.first(kShardFooterBytes - 8)) || !zeros)
    return damaged("footer");
  const std::uint64_t room = file_bytes - kShardFooterBytes;
  if (size != file_bytes || footer.description_offset > room ||
      footer.description_bytes > room - footer.description_offset ||
      footer.description_bytes < kDescriptionFixedBytes)
    return fail(Code::corruption, "its description is not in the file");
  return footer;
}

Result<ShardDescription> decode_shard_description(std::span<const std::byte> bytes,
                                                  const ShardFooter& footer) {
  if (bytes.size() != footer.description_bytes || checksum64(bytes) != footer.checksum)
    return damaged("description");
  WireReader reader(bytes);
  BELAY_ASSIGN(const std::uint32_t version, get_start(reader, kShardMagic));
  if (version != kCopiesFormat)
    return fail(Code::corruption, "shards of format {} were never written", version);
  ShardDescription description;
  Stripe& stripe = description.stripe;
  stripe.number = reader.field<std::uint32_t>();
  description.origin = get_origin(reader);
  stripe.key = description.origin.key;
  description.parity_bytes = reader.field<std::uint64_t>();
  description.seat = reader.field<std::uint32_t>();
  description.index = reader.field<std::uint32_t>();
  const auto seats = reader.field<std::uint32_t>();
  const auto members = reader.field<std::uint8_t>();
  stripe.level = Level::erasure(members, reader.field<std::uint8_t>());
  const std::uint64_t units = units_of(description.parity_bytes);
  if (!reader.zeros(kDescriptionFixedBytes - reader.offset()) ||
      description.parity_bytes > footer.description_offset ||
      reader.remaining() != kMemberBytes * std::uint64_t{seats} + 8 * units)
    return fail(Code::corruption, "its description has the wrong size");
  stripe.members.resize(seats);
  for (StripeMember& member : stripe.members) {
    member.rank = reader.field<Rank>();
    if (!reader.zeros(4)) return fail(Code::corruption, "reserved bytes are not zero");
    member.file_bytes = reader.field<std::uint64_t>();
    member.gap_begin = reader.field<std::uint64_t>();
    member.gap_bytes = reader.field<std::uint64_t>();
  }
  description.checksums.resize(units);
  for (std::uint64_t& checksum : description.checksums) checksum = reader.field<std::uint64_t>();
  BELAY_TRY(check_description(description));
  return description;
}

}  // namespace belay::format
