// SPDX-License-Identifier: Apache-2.0
#include "catalog/catalog.hpp"

namespace belay::catalog {

Catalog::Catalog() { forget(); }

void Catalog::adopt(std::shared_ptr<const Manifest> manifest,
                    std::vector<std::uint64_t> live_bytes) {
  regions_.clear();
  manifest_ = std::move(manifest);
  live_bytes_ = std::move(live_bytes);
  regions_.reserve(manifest_->regions.size());
  for (const RegionRecord& region : manifest_->regions) regions_.emplace(region.name, &region);
}

void Catalog::forget() { adopt(std::make_shared<Manifest>(), {}); }

const RegionRecord* Catalog::region(std::string_view name) const {
  const auto found = regions_.find(name);
  return found == regions_.end() ? nullptr : found->second;
}

std::size_t Catalog::memory_bytes() const {
  return manifest_->fingerprints.capacity() * sizeof(Fingerprint) + manifest_->holders.capacity();
}

}  // namespace belay::catalog
