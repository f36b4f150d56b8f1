// SPDX-License-Identifier: Apache-2.0
// Blocks that a lost or damaged segment had, and that segments of other ranks, or copies of those,
// have as well.
#pragma once

#include "inspect/audited_file.hpp"
#include "inspect/block_sources.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

namespace belay::inspect {

/// All arguments must outlive it. One thread.
class NaturalCopies {
 public:
  NaturalCopies(const StoreView& view, const BlockSources& sources)
      : view_(view), sources_(sources) {}

  /// Does any file of the version have it, undamaged? False unless the manifest counts on other
  /// ranks' segments of that version. Reads all files of the version when it is first asked about
  /// one of its blocks.
  bool have(SegmentAudit& audit, const Manifest& manifest, VersionKey key, const BlockName& name);

 private:
  using Kind = std::tuple<VersionKey, HashKind, std::uint64_t>;

  void read(SegmentAudit& audit, VersionKey key);

  const StoreView& view_;
  const BlockSources& sources_;
  std::set<VersionKey> read_;
  std::map<Kind, std::unordered_set<BlockName, BlockNameHash>> good_;
};

}  // namespace belay::inspect
