// SPDX-License-Identifier: Apache-2.0
// Reads verified ranges of segments and shards for ranks that rebuild what was lost.
#pragma once

#include <belay/result.hpp>

#include "base/log.hpp"
#include "base/stripe.hpp"
#include "catalog/whereabouts.hpp"
#include "fingerprint/hasher.hpp"
#include "session/block_server.hpp"
#include "store/segment_file.hpp"
#include "store/shard_file.hpp"
#include "store/tier.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace belay::session {

/// Bytes of a member, which has a gap, or of the parity of a shard.
struct RangeQuestion {
  StoredFile file;
  std::uint64_t gap_begin = 0;
  std::uint64_t gap_bytes = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
};

std::vector<std::byte> encode_questions(const std::vector<RangeQuestion>& questions);

class RangeServer {
 public:
  RangeServer(store::Tier& tier, const catalog::Whereabouts& whereabouts, const StoreId& store,
              Log& log)
      : tier_(tier), whereabouts_(whereabouts), store_(store), log_(log) {}

  /// For each question in order: a byte 1 and the bytes, all verified, or a byte 0.
  std::vector<std::byte> answer(std::span<const std::byte> questions);
  /// Files that are damaged or gone, as far as they were asked for.
  const std::set<StoredFile>& damaged() const { return damaged_; }

 private:
  Result<void> read(const RangeQuestion& question, std::span<std::byte> into);
  Result<store::SegmentFile*> segment(const StoredFile& file);
  Result<store::ShardFile*> shard(const StoredFile& file);
  const fingerprint::Hasher* hasher(const format::SegmentHeader& header);

  store::Tier& tier_;
  const catalog::Whereabouts& whereabouts_;
  StoreId store_;
  Log& log_;
  std::map<StoredFile, store::SegmentFile> segments_;
  std::map<StoredFile, store::ShardFile> shards_;
  std::map<HashKind, std::unique_ptr<fingerprint::Hasher>> hashers_;
  std::set<StoredFile> damaged_;   ///< some of it at least
  std::set<StoredFile> unopened_;  ///< these cannot be
};

}  // namespace belay::session
