// SPDX-License-Identifier: Apache-2.0
// Reads blocks for other ranks, from segments and copies of this node.
#pragma once

#include "base/log.hpp"
#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "fingerprint/hasher.hpp"
#include "os/parallel.hpp"
#include "store/segment_file.hpp"
#include "store/tier.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace belay::session {

/// A segment, or the copy of it in one place.
struct StoredFile {
  SegmentId id;
  FileKind kind = FileKind::segment;
  catalog::Whereabouts::Place place = 0;
  auto operator<=>(const StoredFile&) const = default;
};

struct BlockQuestion {
  StoredFile file;
  Fingerprint fingerprint;
  std::uint32_t length = 0;
};

std::vector<std::byte> encode_questions(const std::vector<BlockQuestion>& questions);

class BlockServer {
 public:
  BlockServer(store::Tier& tier, const fingerprint::Hasher& hasher, os::Parallel& readers,
              const catalog::Whereabouts& whereabouts, const StoreId& store, Log& log)
      : tier_(tier),
        hasher_(hasher),
        readers_(readers),
        whereabouts_(whereabouts),
        store_(store),
        log_(log) {}

  /// For each question in order: a byte 1 and the block as it was read, or a byte 0. The asker
  /// verifies.
  std::vector<std::byte> answer(std::span<const std::byte> questions);
  /// Files that were asked for, but are damaged outside of their blocks, or gone.
  std::vector<StoredFile> unreadable() const;

 private:
  store::SegmentFile* open(const StoredFile& file);

  store::Tier& tier_;
  const fingerprint::Hasher& hasher_;
  os::Parallel& readers_;
  const catalog::Whereabouts& whereabouts_;
  StoreId store_;
  Log& log_;
  std::map<StoredFile, std::optional<store::SegmentFile>> files_;
};

}  // namespace belay::session
