// SPDX-License-Identifier: Apache-2.0
#include "format/wire.hpp"

namespace belay::format {

Result<std::uint32_t> get_start(WireReader& reader, std::string_view magic) {
  if (reader.text(kMagicBytes) != magic)
    return fail(Code::corruption, "the magic is not {}: the file is damaged or not Belay's", magic);
  const auto version = reader.field<std::uint32_t>();
  if (version > kCodecsFormat)
    return fail(Code::unsupported, "written by a newer Belay (format {}); this one reads up to {}",
                version, kCodecsFormat);
  if (version == 0) return fail(Code::corruption, "format version 0 was never written");
  return version;
}

void put_origin(WireWriter& writer, const Origin& origin) {
  writer.pair(origin.store.low, origin.store.high);
  writer.field(origin.seed);
  writer.field(origin.key.run);
  writer.field(origin.key.version);
  writer.field(origin.rank);
  writer.field(origin.ranks);
}

Origin get_origin(WireReader& reader) {
  Origin origin;
  origin.store.low = reader.field<std::uint64_t>();
  origin.store.high = reader.field<std::uint64_t>();
  origin.seed = reader.field<std::uint64_t>();
  origin.key.run = reader.field<Run>();
  origin.key.version = reader.field<Version>();
  origin.rank = reader.field<Rank>();
  origin.ranks = reader.field<Rank>();
  return origin;
}

Result<void> check_header(Code code, const Origin& origin, HashKind hash,
                          std::uint32_t block_bytes) {
  if (origin.rank >= origin.ranks)
    return fail(code, "rank {} of {} ranks does not exist", origin.rank, origin.ranks);
  if (block_bytes < kMinBlockBytes || block_bytes > kMaxBlockBytes)
    return fail(code, "block size {} is not between {} and {}", block_bytes, kMinBlockBytes,
                kMaxBlockBytes);
  if (hash > HashKind::sha256) return fail(code, "hash {} is unknown", static_cast<unsigned>(hash));
  return {};
}

Unexpected damaged(std::string_view what) {
  return fail(Code::corruption, "{}: the checksum does not match: the file was damaged", what);
}

}  // namespace belay::format
