// SPDX-License-Identifier: Apache-2.0
#include "store/shard_file.hpp"

#include "base/try.hpp"
#include "format/checksum.hpp"
#include "format/names.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"
#include "os/memory.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>

namespace belay::store {
namespace {

Result<void> check_zeros(os::File& file, std::uint64_t begin, std::uint64_t end) {
  // A writer fills up to the next page at most; more would take memory that a hostile file asks
  // for.
  if (begin == end) return {};
  if (end - begin > format::kFileAlignment)
    return fail(Code::corruption, "{} bytes at byte {} belong to nothing", end - begin, begin);
  BELAY_ASSIGN(const auto pages, read_pages(file, begin, end));
  const auto bytes = pages.bytes();
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; }))
    return {};
  return fail(Code::corruption, "padding at byte {} is not zero", begin);
}

}  // namespace

Result<ShardFile> ShardFile::open(Tier& tier, const SegmentId& id,
                                  const std::optional<StoreId>& store) {
  ShardFile shard;
  const std::string name = format::shard_name(id);
  shard.where_ = tier.place() + "/" + name;
  BELAY_ASSIGN(shard.file_, tier.open(name));
  BELAY_ASSIGN(shard.file_bytes_, shard.file_->size());
  const std::uint64_t bytes = shard.file_bytes_;
  if (bytes < format::kFileAlignment || bytes % format::kFileAlignment != 0)
    return fail(Code::corruption, "{}: has {} bytes, so it was cut", shard.where_, bytes);
  BELAY_ASSIGN(const auto last, read_pages(*shard.file_, bytes - format::kShardFooterBytes, bytes));
  BELAY_ASSIGN(const auto footer,
               within(shard.where_, format::decode_shard_footer(last.bytes(), bytes)));
  const std::uint64_t begin = footer.description_offset;
  BELAY_ASSIGN(const auto text, read_pages(*shard.file_, begin, begin + footer.description_bytes));
  BELAY_ASSIGN(shard.description_,
               within(shard.where_, format::decode_shard_description(text.bytes(), footer)));
  const auto& found = shard.description_;
  BELAY_TRY(within(shard.where_, check_zeros(*shard.file_, found.parity_bytes, begin)));
  BELAY_TRY(within(shard.where_, check_zeros(*shard.file_, begin + footer.description_bytes,
                                             bytes - format::kShardFooterBytes)));
  if (shard_id(found.stripe.key, found.stripe.number, found.index) != id)
    return fail(Code::corruption, "{}: its content is another file's", shard.where_);
  if (store && found.origin.store != *store)
    return fail(Code::corruption, "{}: belongs to another store", shard.where_);
  return shard;
}

Result<void> ShardFile::read(std::uint64_t offset, std::span<std::byte> into) {
  const std::uint64_t parity = description_.parity_bytes;
  if (offset > parity || into.size() > parity - offset)
    return fail(Code::corruption, "{}: has {} bytes of parity", where_, parity);
  if (into.empty()) return {};
  const std::uint64_t first = offset / format::kShardUnit;
  const std::uint64_t begin = first * format::kShardUnit;
  const std::uint64_t end =
      std::min(parity, format::round_up(offset + into.size(), format::kShardUnit));
  BELAY_ASSIGN(const auto pages, read_pages(*file_, begin, end));
  auto left = pages.bytes();
  for (std::uint64_t unit = first; !left.empty(); ++unit) {
    const auto part = left.first(std::min<std::size_t>(left.size(), format::kShardUnit));
    if (format::checksum64(part) != description_.checksums[unit])
      return fail(Code::corruption, "{}: parity at byte {} is damaged", where_,
                  unit * format::kShardUnit);
    left = left.subspan(part.size());
  }
  std::memcpy(into.data(), pages.bytes().data() + (offset - begin), into.size());
  return {};
}

}  // namespace belay::store
