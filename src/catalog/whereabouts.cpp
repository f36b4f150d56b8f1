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
  remove(file.id, file.kind, place);
  const Holder holder{place, keeper, file.kind, file.bytes, file.seat, false};
  if (file.kind == FileKind::shard) {
    shards_[file.id].push_back(holder);
    return;
  }
  std::vector<Holder>& holders = holders_[file.id];
  const auto first_copy =
      std::find_if(holders.begin(), holders.end(), [](const Holder& h) { return h.is_copy(); });
  holders.insert(holder.is_copy() ? holders.end() : first_copy, holder);
}

void Whereabouts::remove(const SegmentId& id, FileKind kind, Place place) {
  auto& files = kind == FileKind::shard ? shards_ : holders_;
  const auto found = files.find(id);
  if (found == files.end()) return;
  std::erase_if(found->second, [&](const Holder& h) { return h.kind == kind && h.place == place; });
  if (found->second.empty()) files.erase(found);
}

void Whereabouts::add(const Stripe& stripe) {
  for (const StripeMember& member : stripe.members)
    if (!member.empty()) stripe_of_[{stripe.key, member.rank}] = stripe.number;
  stripes_.insert_or_assign({stripe.key, stripe.number}, stripe);
}

void Whereabouts::remove_stripe(VersionKey key, std::uint32_t number) {
  const auto found = stripes_.find({key, number});
  if (found == stripes_.end()) return;
  const Stripe& stripe = found->second;
  for (const StripeMember& member : stripe.members) stripe_of_.erase({key, member.rank});
  for (std::uint32_t i = 0; i < stripe.level.shards; ++i) shards_.erase(shard_id(key, number, i));
  stripes_.erase(found);
}

const Stripe* Whereabouts::stripe_of(const SegmentId& segment) const {
  const auto number = stripe_of_.find(segment);
  if (number == stripe_of_.end()) return nullptr;
  return &stripes_.at({segment.key, number->second});
}

std::vector<const Stripe*> Whereabouts::stripes() const {
  std::vector<const Stripe*> all;
  for (const auto& [id, stripe] : stripes_) all.push_back(&stripe);
  return all;
}

const std::vector<Whereabouts::Holder>& Whereabouts::shards(const SegmentId& id) const {
  static const std::vector<Holder> kNone;
  const auto found = shards_.find(id);
  return found == shards_.end() ? kNone : found->second;
}

std::vector<SegmentId> Whereabouts::all_shards() const {
  std::vector<SegmentId> ids;
  for (const auto& [id, holders] : shards_) ids.push_back(id);
  return ids;
}

void Whereabouts::damaged(const SegmentId& id, FileKind kind, Place place) {
  auto& files = kind == FileKind::shard ? shards_ : holders_;
  const auto found = files.find(id);
  if (found == files.end()) return;
  for (Holder& holder : found->second)
    if (holder.kind == kind && holder.place == place) holder.damaged = true;
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

const Whereabouts::Holder* Whereabouts::original(const SegmentId& id, std::uint64_t bytes) const {
  for (const Holder& holder : holders(id))
    if (!holder.is_copy() && holder.bytes == bytes && !is_global(holder.place)) return &holder;
  return nullptr;
}

bool Whereabouts::has_member(const Stripe& stripe, std::uint32_t seat) const {
  const StripeMember& member = stripe.members[seat];
  return member.empty() || original({stripe.key, member.rank}, member.file_bytes) != nullptr;
}

const Whereabouts::Holder* Whereabouts::shard(const Stripe& stripe, std::uint32_t seat,
                                              std::uint32_t index) const {
  for (const Holder& holder : shards(shard_id(stripe.key, stripe.number, index)))
    if (holder.seat == seat) return &holder;
  return nullptr;
}

bool Whereabouts::can_rebuild(const Stripe& stripe, std::uint32_t seat) const {
  const std::uint32_t seats = stripe.seats();
  const std::uint32_t k = stripe.level.members;
  const std::uint32_t m = stripe.level.shards;
  for (std::uint32_t chunk = 0; chunk < k; ++chunk) {
    const std::uint32_t codeword = (seat + seats - chunk) % seats;
    std::uint32_t lost = 0;
    for (std::uint32_t position = 0; position < k + m; ++position) {
      const std::uint32_t at = (codeword + position) % seats;
      const bool there =
          position < k ? has_member(stripe, at) : shard(stripe, at, position - k) != nullptr;
      lost += there ? 0 : 1;
    }
    if (lost > m) return false;
  }
  return true;
}

std::vector<Whereabouts::Place> Whereabouts::places_if_whole(const Stripe& stripe) const {
  std::set<Place> taken;
  for (std::uint32_t seat = 0; seat < stripe.seats(); ++seat) {
    std::set<Place> places;
    const auto is_good = [&](const Holder* holder) {
      if (holder == nullptr || holder->damaged) return false;
      places.insert(holder->place);
      return true;
    };
    const StripeMember& member = stripe.members[seat];
    if (!member.empty() && !is_good(original({stripe.key, member.rank}, member.file_bytes)))
      return {};
    for (std::uint32_t i = 0; i < stripe.level.shards; ++i)
      if (!is_good(shard(stripe, seat, i))) return {};
    for (const Place place : places)
      if (!taken.insert(place).second) return {};
  }
  return {taken.begin(), taken.end()};
}

bool Whereabouts::found(const SegmentRef& segment) const {
  const auto& all = holders(segment.id);
  if (std::any_of(all.begin(), all.end(), [&](const Holder& holder) {
        return holder.is_copy() || holder.bytes == segment.file_bytes;
      }))
    return true;
  const Stripe* const stripe = stripe_of(segment.id);
  if (stripe == nullptr) return false;
  for (std::uint32_t seat = 0; seat < stripe->seats(); ++seat)
    if (stripe->members[seat].rank == segment.id.rank) return can_rebuild(*stripe, seat);
  return false;
}

std::vector<Whereabouts::Place> Whereabouts::places_of_copies(const SegmentId& id) const {
  std::vector<Place> places;
  for (const Holder& holder : holders(id)) {
    if (!holder.is_copy()) continue;
    if (holder.damaged) return {};
    places.push_back(holder.place);
  }
  return places;
}

std::vector<Whereabouts::Place> Whereabouts::places_if_whole(const SegmentRef& segment,
                                                             bool with_all) const {
  if (trusts_copies_ && !with_all)
    if (auto places = places_of_copies(segment.id); !places.empty()) return places;
  const Holder* const own = original(segment.id, segment.file_bytes);
  if (own == nullptr || own->damaged) return {};
  if (!with_all) return {own->place};
  if (segment.shards > 0) {
    const Stripe* const stripe = stripe_of(segment.id);
    return stripe == nullptr ? std::vector<Place>() : places_if_whole(*stripe);
  }
  std::set<Place> places;
  for (const Holder& holder : holders(segment.id))
    if (!is_global(holder.place) && !holder.damaged &&
        (holder.is_copy() || holder.bytes == segment.file_bytes))
      places.insert(holder.place);
  if (places.size() <= segment.copies) return {};
  return {places.begin(), places.end()};
}

}  // namespace belay::catalog
