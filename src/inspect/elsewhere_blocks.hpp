// SPDX-License-Identifier: Apache-2.0
// Blocks that manifests leave to other ranks, and the segment that has each of them.
#pragma once

#include "inspect/block_sources.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace belay::inspect {

class ElsewhereBlocks {
 public:
  /// Adds those of one manifest, which has its block arrays.
  void want(const Manifest& manifest);
  /// Notes which of them are in the file, but for those at `bad_offsets`.
  void find_in(const store::SegmentFile& file, const SegmentId& id,
               const std::set<std::uint64_t>& bad_offsets);

  /// Does any manifest leave this block of this file to it?
  bool wants(const store::SegmentFile& file, const BlockName& name) const;
  /// Unset: no file has it. REQUIRES: want(manifest), and `elsewhere` is one of its segments.
  std::optional<SegmentId> segment_of(const Manifest& manifest, const SegmentRef& elsewhere,
                                      const BlockName& name) const;

 private:
  using Kind = std::tuple<VersionKey, HashKind, std::uint64_t>;
  using Found = std::unordered_map<BlockName, std::optional<SegmentId>, BlockNameHash>;

  static Kind kind_of(const store::SegmentFile& file);
  std::map<Kind, Found> wanted_;
};

}  // namespace belay::inspect
