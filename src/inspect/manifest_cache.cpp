// SPDX-License-Identifier: Apache-2.0
#include "inspect/manifest_cache.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::inspect {

Result<std::shared_ptr<const Manifest>> ManifestCache::load(VersionKey key, const PartView& part) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.key == key && entry.rank == part.rank;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return found->manifest;
  }
  BELAY_ASSIGN(auto manifest, view_.load(part, key));
  Entry entry{.key = key, .rank = part.rank, .bytes = part.manifest_bytes, .manifest = {}};
  entry.manifest = std::make_shared<const Manifest>(std::move(manifest));
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  while (bytes_ > most_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return entries_.front().manifest;
}

}  // namespace belay::inspect
