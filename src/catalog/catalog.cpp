// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

#include <utility>

namespace belay::catalog {

Catalog::Catalog() { forget(); }

void Catalog::adopt(std::shared_ptr<Manifest> manifest, std::vector<std::uint64_t> live_bytes) {
  whole_ = true;
  regions_.clear();
  next_region_ = 0;
  manifest_ = std::move(manifest);
  live_bytes_ = std::move(live_bytes);
}

void Catalog::forget() { adopt(std::make_shared<Manifest>(), {}); }

BlockTable Catalog::lend() {
  whole_ = false;
  return std::exchange(static_cast<BlockTable&>(*manifest_), {});
}

void Catalog::give_back(BlockTable table, bool as_it_was) {
  whole_ = as_it_was;
  static_cast<BlockTable&>(*manifest_) = std::move(table);
}

const RegionRecord* Catalog::region(std::string_view name) const {
  const auto& all = manifest_->regions;
  // Versions follow each other with the same regions in the same order.
  if (next_region_ < all.size() && all[next_region_].name == name) return &all[next_region_++];
  if (regions_.empty())
    for (const RegionRecord& region : all) regions_.emplace(region.name, &region);
  const auto found = regions_.find(name);
  if (found != regions_.end())
    next_region_ = static_cast<std::size_t>(found->second - all.data()) + 1;
  return found == regions_.end() ? nullptr : found->second;
}

std::size_t Catalog::memory_bytes() const {
  return manifest_->fingerprints.capacity() * sizeof(Fingerprint) + manifest_->holders.capacity();
}

}  // namespace belay::catalog
