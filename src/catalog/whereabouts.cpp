// SPDX-License-Identifier: Apache-2.0
#include "catalog/whereabouts.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace belay::catalog {

Whereabouts::Place Whereabouts::place(std::string_view directory) {
  const auto found = std::find(directories_.begin(), directories_.end(), directory);
  const auto number = static_cast<Place>(found - directories_.begin());
  if (found == directories_.end()) directories_.emplace_back(directory);
  return number;
}

void Whereabouts::add(const HeldFile& file, Place place, Rank keeper) {
  remove(file.id, file.copy, place);
  std::vector<Holder>& holders = holders_[file.id];
  const Holder holder{place, keeper, file.copy, file.bytes, false};
  const auto first_copy =
      std::find_if(holders.begin(), holders.end(), [](const Holder& h) { return h.copy; });
  holders.insert(file.copy ? holders.end() : first_copy, holder);
}

void Whereabouts::remove(const SegmentId& id, bool copy, Place place) {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  std::erase_if(found->second, [&](const Holder& h) { return h.copy == copy && h.place == place; });
  if (found->second.empty()) holders_.erase(found);
}

void Whereabouts::damaged(const SegmentId& id, bool copy, Place place) {
  if (!is_global(place)) return remove(id, copy, place);
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  for (Holder& holder : found->second)
    if (holder.copy == copy && holder.place == place) holder.damaged = true;
}

void Whereabouts::remove(const SegmentId& id, bool global) {
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  std::erase_if(found->second, [&](const Holder& h) { return is_global(h.place) == global; });
  if (found->second.empty()) holders_.erase(found);
}

const std::vector<Whereabouts::Holder>& Whereabouts::holders(const SegmentId& id) const {
  static const std::vector<Holder> kNone;
  const auto found = holders_.find(id);
  return found == holders_.end() ? kNone : found->second;
}

std::vector<SegmentId> Whereabouts::segments_of(VersionKey key) const {
  std::vector<SegmentId> ids;
  for (auto entry = holders_.lower_bound({key, 0});
       entry != holders_.end() && entry->first.key == key; ++entry)
    ids.push_back(entry->first);
  return ids;
}

std::vector<SegmentId> Whereabouts::segments() const {
  std::vector<SegmentId> ids;
  for (const auto& [id, holders] : holders_) ids.push_back(id);
  return ids;
}

bool Whereabouts::found(const SegmentRef& segment) const {
  const auto& all = holders(segment.id);
  return std::any_of(all.begin(), all.end(), [&](const Holder& holder) {
    return holder.copy || holder.bytes == segment.file_bytes;
  });
}

bool Whereabouts::safe(const SegmentRef& segment, std::uint32_t losses) const {
  std::set<Place> places;
  bool original = false;
  for (const Holder& holder : holders(segment.id)) {
    if (is_global(holder.place)) continue;
    if (!holder.copy && holder.bytes != segment.file_bytes) continue;
    original = original || !holder.copy;
    places.insert(holder.place);
  }
  return original && (losses == 0 || places.size() > segment.copies);
}

}  // namespace belay::catalog
