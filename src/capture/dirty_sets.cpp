// SPDX-License-Identifier: Apache-2.0
#include "capture/dirty_sets.hpp"

#include "base/mistakes.hpp"

namespace belay::capture {

const std::vector<bool>* DirtySets::collect(const std::string& region,
                                            std::span<const std::byte> memory,
                                            std::uint32_t block_bytes) {
  if (!tracker_) return nullptr;
  Set& set = sets_[region];
  // Blocks beyond the former end are new: they count as written.
  set.dirty.resize((memory.size() + block_bytes - 1) / block_bytes, true);
  const bool told = tracker_->collect(region, memory, block_bytes, set.dirty);
  if (!told) {
    sets_.erase(region);  // a tracker that cannot tell costs no memory either
    return nullptr;
  }
  set.collected = true;
  return set.trusted ? &set.dirty : nullptr;
}

void DirtySets::version_exists() {
  for (auto& [region, set] : sets_) {
    if (!set.collected) {
      set.trusted = false;  // it was not part of that version
      continue;
    }
    set.dirty.assign(set.dirty.size(), false);
    set.trusted = true;
    set.collected = false;
  }
}

void DirtySets::version_failed() {
  if (planted(Mistake::forget_dirty))
    for (auto& [region, set] : sets_) set.dirty.assign(set.dirty.size(), false);
  for (auto& [region, set] : sets_) set.collected = false;
}

void DirtySets::distrust(std::string_view region) {
  if (const auto found = sets_.find(region); found != sets_.end()) sets_.erase(found);
}

void DirtySets::distrust_all() { sets_.clear(); }

}  // namespace belay::capture
