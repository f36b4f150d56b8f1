// SPDX-License-Identifier: Apache-2.0
// The share of one rank, as who aggregates it sees it: asked for in parts, here or there.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_plan.hpp"
#include "base/bytes.hpp"
#include "base/nouns.hpp"
#include "os/paged_vector.hpp"
#include "session/drain_share.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace belay::session {

class ShareReader {
 public:
  /// About `most` bytes of its parts, from `begin` on.
  using Fetch =
      std::function<Result<std::vector<std::byte>>(std::uint64_t begin, std::uint64_t most)>;

  /// Parts have about `part_bytes`.
  ShareReader(Rank rank, ShareHead head, std::uint64_t part_bytes, Fetch fetch)
      : rank_(rank), head_(std::move(head)), part_bytes_(part_bytes), fetch_(std::move(fetch)) {}

  Rank rank() const { return rank_; }
  const ShareHead& head() const { return head_; }

  /// All of the manifest.
  Result<os::PagedVector<std::byte>> manifest();
  /// The same, verified as it goes by.
  Result<void> copy_manifest(ByteSink& sink);
  /// All of it but the block tables.
  Result<Manifest> manifest_head();

  /// Some blocks of a segment, with the regions that they are of.
  struct Slice {
    aggregate::Source source;
    os::PagedVector<std::uint32_t> regions;
  };
  Result<Slice> slice(std::size_t segment, std::uint64_t first, std::uint64_t count);
  /// All blocks of a segment.
  Result<aggregate::Source> source(std::size_t segment);

 private:
  Result<void> each_part(std::uint64_t begin, std::uint64_t end,
                         const std::function<Result<void>(std::span<const std::byte>)>& take);
  Result<void> read_blocks(std::size_t segment, std::uint64_t first, std::uint64_t count,
                           const std::function<void(const SharedBlock&)>& take);

  Rank rank_;
  ShareHead head_;
  std::uint64_t part_bytes_;
  Fetch fetch_;
};

}  // namespace belay::session
