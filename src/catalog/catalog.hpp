// SPDX-License-Identifier: Apache-2.0
// What is safe, and where: the last existing version of this rank. Losing it costs space and time,
// never data.
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace belay::catalog {

/// Only vote/ and restore change it, and only with versions that exist. One thread at a time.
class Catalog {
 public:
  Catalog();

  /// `manifest` is of a version that exists on all ranks. `live_bytes` of each of its segments.
  void adopt(std::shared_ptr<Manifest> manifest, std::vector<std::uint64_t> live_bytes);
  /// Nothing is safe any more; the next version writes everything.
  void forget();

  /// Gives the manifest's block table away, to be overwritten by the next version: two tables would
  /// take twice the memory. The catalog is not whole until another version is adopted, or the table
  /// is given back as it was.
  BlockTable lend();
  void give_back(BlockTable table, bool as_it_was);
  bool whole() const { return whole_; }

  /// The last existing version; with no regions at all if there is none.
  const Manifest& manifest() const { return *manifest_; }
  VersionKey key() const { return manifest_->origin.key; }
  /// nullptr: that version had no such region.
  /// Cheapest when asked for in the order of the manifest.
  const RegionRecord* region(std::string_view name) const;
  const std::vector<std::uint64_t>& live_bytes() const { return live_bytes_; }
  std::size_t memory_bytes() const;

 private:
  std::shared_ptr<Manifest> manifest_;
  bool whole_ = true;
  mutable std::size_t next_region_ = 0;  ///< probably the one asked for next
  mutable std::unordered_map<std::string_view, const RegionRecord*> regions_;  ///< made when needed
  std::vector<std::uint64_t> live_bytes_;
};

}  // namespace belay::catalog
