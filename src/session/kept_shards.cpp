// SPDX-License-Identifier: Apache-2.0
#include "session/kept_shards.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/checksum.hpp"
#include "format/names.hpp"

#include <algorithm>

namespace belay::session {
namespace {

constexpr std::size_t kBufferBytes = 64 << 10;  // for the end of a file

}  // namespace

KeptShards::KeptShards(Equipment& equipment, std::vector<format::ShardDescription> shards)
    : equipment_(equipment) {
  for (format::ShardDescription& shard : shards) shards_.push_back({std::move(shard)});
}

Result<void> KeptShards::start(Shard& shard) {
  BELAY_ASSIGN(shard.buffer, os::AlignedMemory::allocate(kBufferBytes));
  BELAY_ASSIGN(auto writer,
               store::FileWriter::create_large(equipment_.tier, format::shard_name(id_of(shard))));
  shard.writer.emplace(std::move(writer));
  shard.writer->lend(shard.buffer.bytes());
  return {};
}

Result<void> KeptShards::write(const Piece& piece) {
  Shard& shard = shards_[piece.shard];
  if (!shard.writer) BELAY_TRY(start(shard));
  for (auto left = piece.bytes; !left.empty();) {
    const auto unit = left.first(std::min<std::size_t>(left.size(), format::kShardUnit));
    shard.description.checksums.push_back(format::checksum64(unit));
    left = left.subspan(unit.size());
  }
  const std::size_t pages = piece.bytes.size() / os::kDirectAlignment * os::kDirectAlignment;
  if (pages > 0) BELAY_TRY(shard.writer->append_aligned(piece.bytes.first(pages)));
  return shard.writer->append(piece.bytes.subspan(pages));
}

Result<void> KeptShards::finish() {
  for (Shard& shard : shards_) {
    if (!shard.writer) BELAY_TRY(start(shard));
    BELAY_TRY(shard.writer->append(format::encode_shard_end(shard.description)));
    file_bytes_ += shard.writer->offset();
    BELAY_TRY(shard.writer->complete());
  }
  for (Shard& shard : shards_) {
    BELAY_TRY(shard.writer->finish(planted(Mistake::skip_copy_sync)));
    shard.writer.reset();
    shard.buffer = {};
  }
  if (planted(Mistake::one_shard_less) && !shards_.empty())
    BELAY_TRY(equipment_.tier.remove(format::shard_name(id_of(shards_.back()))));
  return shards_.empty() ? Result<void>{} : equipment_.tier.sync_names();
}

void KeptShards::clear_away() {
  for (Shard& shard : shards_) {
    shard.writer.reset();
    (void)equipment_.tier.remove(format::shard_name(id_of(shard)));
  }
}

std::vector<SegmentId> KeptShards::ids() const {
  std::vector<SegmentId> ids;
  for (const Shard& shard : shards_) ids.push_back(id_of(shard));
  return ids;
}

}  // namespace belay::session
