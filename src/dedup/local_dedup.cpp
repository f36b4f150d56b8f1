// SPDX-License-Identifier: Apache-2.0
#include "dedup/local_dedup.hpp"

#include <algorithm>

namespace belay::dedup {
namespace {

// What the number in a slot counts: blocks of the older version, or of one of these.
constexpr std::uint32_t kCurrent = std::uint32_t{1} << 31;
constexpr std::uint32_t kDisplaced = std::uint32_t{1} << 30;
constexpr std::size_t kLeastSlots = 64;
// Linear probing stays short up to 92 % full; 1.25 slots a block leave room for 15 % of new blocks
// before the older version's are forgotten.
constexpr double kSlotsPerBlock = 1.25;
constexpr double kFull = 0.92;

std::uint32_t number_in(std::uint32_t slot) { return (slot & ~(kCurrent | kDisplaced)) - 1; }

}  // namespace

void LocalDedup::resize(std::size_t blocks) {
  const auto slots = static_cast<std::size_t>(static_cast<double>(blocks) * kSlotsPerBlock);
  slots_.assign(std::max(slots, kLeastSlots), 0);
  used_ = 0;
}

void LocalDedup::index(const Manifest& older) {
  older_ = &older;
  current_ = nullptr;
  in_place_ = false;
  passed_ = 0;
  displaced_.clear();
  last_region_ = 0;
  live_bytes_.assign(older.segments.size(), 0);
  last_counted_.assign(older.segments.size(), {});
  older_blocks_ = older.fingerprints.size();
  resize(older_blocks_);
  for (const RegionRecord& region : older.regions) {
    const std::uint64_t blocks = older.blocks_of(region);
    for (std::uint64_t index = 0; index < blocks; ++index) {
      const std::uint64_t block = region.first_block + index;
      const std::uint32_t length = older.length_of(region, index);
      const std::size_t place = place_of(older.fingerprints[block], length);
      if (slots_[place] != 0) {
        count_again(block, length, slots_[place]);
        continue;
      }
      slots_[place] = static_cast<std::uint32_t>(block + 1);
      ++used_;
      live_bytes_[older.holders[block]] += length;
    }
  }
}

void LocalDedup::start(const Manifest& current, std::size_t blocks, bool in_place) {
  current_ = &current;
  in_place_ = in_place;
  if (used_ == 0) resize(blocks);
}

void LocalDedup::count_again(std::uint64_t block, std::uint32_t length, std::uint32_t first) {
  // Where two segments hold the same content, both are needed. Rows of equal blocks, such as zeros,
  // count once.
  const std::uint8_t holder = older_->holders[block];
  const Fingerprint& content = older_->fingerprints[block];
  if (holder == older_->holders[number_in(first)] || last_counted_[holder] == content) return;
  last_counted_[holder] = content;
  live_bytes_[holder] += length;
}

std::size_t LocalDedup::home(const Fingerprint& fingerprint) const {
  // Multiply instead of modulo: fingerprints are uniform, so their high bits scale to any size.
  return static_cast<std::size_t>(((fingerprint.low >> 32) * slots_.size()) >> 32);
}

bool LocalDedup::is_current(std::uint32_t slot) const {
  if ((slot & kDisplaced) != 0) return false;
  return (slot & kCurrent) != 0 || number_in(slot) < passed_;
}

std::uint64_t LocalDedup::block_of(std::uint32_t slot) const {
  return (slot & kDisplaced) != 0 ? displaced_[number_in(slot)].block : number_in(slot);
}

const Fingerprint& LocalDedup::fingerprint_of(std::uint32_t slot) const {
  if ((slot & kDisplaced) != 0) return displaced_[number_in(slot)].fingerprint;
  const BlockTable& table = in_place_ || is_current(slot) ? *current_ : *older_;
  return table.fingerprints[number_in(slot)];
}

std::uint32_t LocalDedup::length_of(std::uint32_t slot) const {
  const Manifest& manifest = is_current(slot) ? *current_ : *older_;
  const std::uint64_t block = block_of(slot);
  const auto holds = [&](std::size_t index) {
    const RegionRecord& region = manifest.regions[index];
    return region.first_block <= block && block < region.first_block + manifest.blocks_of(region);
  };
  if (last_region_ >= manifest.regions.size() || !holds(last_region_)) {
    const auto after = std::upper_bound(
        manifest.regions.begin(), manifest.regions.end(), block,
        [](std::uint64_t b, const RegionRecord& region) { return b < region.first_block; });
    // Empty regions share their first block with the region that follows: the last one has it.
    last_region_ = static_cast<std::size_t>(after - manifest.regions.begin()) - 1;
  }
  const RegionRecord& region = manifest.regions[last_region_];
  return manifest.length_of(region, block - region.first_block);
}

std::size_t LocalDedup::place_of(const Fingerprint& fingerprint, std::uint32_t length) const {
  std::size_t place = home(fingerprint);
  while (slots_[place] != 0 &&
         !(fingerprint_of(slots_[place]) == fingerprint && length_of(slots_[place]) == length))
    place = place + 1 == slots_.size() ? 0 : place + 1;
  return place;
}

std::optional<LocalDedup::Found> LocalDedup::find(const Fingerprint& fingerprint,
                                                  std::uint32_t length) const {
  const std::uint32_t slot = slots_[place_of(fingerprint, length)];
  if (slot == 0) return {};
  const std::uint64_t block = block_of(slot);
  if (is_current(slot)) return Found{true, block, current_->holders[block]};
  if ((slot & kDisplaced) != 0) return Found{false, block, displaced_[number_in(slot)].holder};
  return Found{false, block, (in_place_ ? *current_ : *older_).holders[block]};
}

void LocalDedup::displace(std::uint64_t block) {
  // Half of all blocks is what a program overwrites that swaps two arrays.
  if (block >= older_blocks_ || displaced_.size() >= older_blocks_ / 2) return;
  const auto slot = static_cast<std::uint32_t>(block + 1);
  const Fingerprint content = current_->fingerprints[block];
  std::uint32_t& place = slots_[place_of(content, length_of(slot))];
  if (place != slot) return;
  displaced_.push_back({content, static_cast<std::uint32_t>(block), current_->holders[block]});
  place = static_cast<std::uint32_t>(displaced_.size()) | kDisplaced;
}

void LocalDedup::add(std::uint64_t block) {
  if (static_cast<double>(used_ + 1) > static_cast<double>(slots_.size()) * kFull) make_room();
  const auto slot = static_cast<std::uint32_t>(block + 1) | kCurrent;
  const std::size_t place = place_of(current_->fingerprints[block], length_of(slot));
  if (slots_[place] == 0) ++used_;
  slots_[place] = slot;
}

std::size_t LocalDedup::memory_bytes() const {
  return slots_.capacity() * sizeof(slots_[0]) + displaced_.size() * sizeof(Displaced);
}

void LocalDedup::make_room() {
  std::vector<std::uint32_t> kept;
  for (const std::uint32_t slot : slots_)
    if ((slot & kCurrent) != 0) kept.push_back(slot);
  // With the older version's blocks gone there is mostly room enough; a version that is much larger
  // than the older one (or the first one) needs more slots.
  if (static_cast<double>(kept.size()) * kSlotsPerBlock > static_cast<double>(slots_.size()))
    resize(kept.size() * 2);
  else
    std::fill(slots_.begin(), slots_.end(), 0);
  displaced_.clear();
  used_ = kept.size();
  for (const std::uint32_t slot : kept)
    slots_[place_of(fingerprint_of(slot), length_of(slot))] = slot;
}

}  // namespace belay::dedup
