// SPDX-License-Identifier: Apache-2.0
#include "store/overlay_tier.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::store {
namespace {

class OverlayTier final : public Tier {
 public:
  explicit OverlayTier(std::vector<std::unique_ptr<Tier>> places) : places_(std::move(places)) {}

  Result<std::unique_ptr<os::File>> create(const std::string& name) override {
    return first().create(name);
  }
  Result<std::unique_ptr<os::File>> open(const std::string& name) override {
    return find([&](Tier& tier) { return tier.open(name); });
  }
  Result<void> publish(const std::string& temporary, const std::string& name,
                       bool exclusive) override {
    return first().publish(temporary, name, exclusive);
  }
  Result<std::uint64_t> touch(const std::string& name) override {
    return find([&](Tier& tier) { return tier.touch(name); });
  }
  /// From all places. Those other than the first are in nobody's way.
  Result<void> remove(const std::string& name) override {
    auto result = first().remove(name);
    for (std::size_t i = 1; i < places_.size(); ++i) {
      auto other = places_[i]->remove(name);
      const bool said = result || !is_gone(result);
      if (!said || (result && !other && !is_gone(other))) result = std::move(other);
    }
    return result;
  }
  Result<void> sync_names() override {
    BELAY_TRY(first().sync_names());
    for (std::size_t i = 1; i < places_.size(); ++i)
      if (auto synced = places_[i]->sync_names(); !synced && !is_gone(synced)) return synced;
    return {};
  }
  Result<std::vector<std::string>> list() override {
    std::vector<std::string> names;
    for (const auto& place : places_) {
      auto more = place->list();
      if (!more && place != places_.front() && is_gone(more)) continue;
      if (!more) return more;
      names.insert(names.end(), more->begin(), more->end());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  Result<os::Space> space() override { return first().space(); }
  const std::string& place() const override { return places_.front()->place(); }
  std::vector<Tier*> places() override {
    std::vector<Tier*> all;
    for (const auto& place : places_) all.push_back(place.get());
    return all;
  }

 private:
  Tier& first() { return *places_.front(); }

  /// An old place that was removed holds nothing any more, and is in nobody's way.
  template <class T>
  static bool is_gone(const Result<T>& result) {
    return result.error().code() == Code::not_found;
  }

  /// The first place that has the name decides; any other failure is not "elsewhere".
  template <class Look>
  auto find(const Look& look) -> decltype(look(std::declval<Tier&>())) {
    auto result = look(first());
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (result || result.error().code() != Code::not_found) break;
      if (auto other = look(*places_[i]); other || other.error().code() != Code::not_found)
        result = std::move(other);
    }
    return result;
  }

  std::vector<std::unique_ptr<Tier>> places_;
};

}  // namespace

Tier& place_in(Tier& tier, std::string_view directory) {
  for (Tier* const place : tier.places())
    if (place->place() == directory) return *place;
  return tier;
}

std::unique_ptr<Tier> make_overlay_tier(std::vector<std::unique_ptr<Tier>> places) {
  if (places.size() == 1) return std::move(places.front());
  return std::make_unique<OverlayTier>(std::move(places));
}

}  // namespace belay::store
