// SPDX-License-Identifier: Apache-2.0
// Whole manifests, loaded again only when they were not used for long.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <list>
#include <memory>

namespace belay::inspect {

/// Bounded: with one more than fits, the one that was not used for the longest time goes.
class ManifestCache {
 public:
  explicit ManifestCache(const StoreView& view, std::uint64_t most_bytes = std::uint64_t{256} << 20)
      : view_(view), most_bytes_(most_bytes) {}

  Result<std::shared_ptr<const Manifest>> load(VersionKey key, const PartView& part);

 private:
  struct Entry {
    VersionKey key;
    Rank rank = 0;
    std::uint64_t bytes = 0;
    std::shared_ptr<const Manifest> manifest;
  };

  const StoreView& view_;
  std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::list<Entry> entries_;  ///< last used first
};

}  // namespace belay::inspect
