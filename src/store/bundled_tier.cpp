// SPDX-License-Identifier: Apache-2.0
#include "store/bundled_tier.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "store/bundled_copy.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace belay::store {
namespace {

constexpr std::size_t kMostOpened = 8;

/// Of a bundle with this rider: does it have blocks of the segment?
struct HasSegment {
  SegmentId segment;
  bool operator()(const SegmentId&, const format::Rider& rider) const {
    return rider.find(segment).has_value();
  }
};

class BundledTier final : public Tier {
 public:
  explicit BundledTier(std::unique_ptr<Tier> tier) : tier_(std::move(tier)) {}

  Result<std::unique_ptr<os::File>> create(const std::string& name) override {
    return tier_->create(name);
  }
  Result<std::unique_ptr<os::File>> open(const std::string& name) override {
    auto file = tier_->open(name);
    if (file && is_a(name, format::NameKind::copy)) {
      auto joined = open_joined(name);
      if (joined && *joined) return joined;
    }
    if (file || file.error().code() != Code::not_found) return file;
    BELAY_ASSIGN(auto bundled, open_bundled(name));
    return bundled ? Result<std::unique_ptr<os::File>>(std::move(bundled)) : std::move(file);
  }
  Result<void> publish(const std::string& temporary, const std::string& name,
                       bool exclusive) override {
    return tier_->publish(temporary, name, exclusive);
  }
  Result<std::uint64_t> touch(const std::string& name) override {
    auto bytes = tier_->touch(name);
    if (bytes || bytes.error().code() != Code::not_found) return bytes;
    BELAY_ASSIGN(const auto bundled, open_bundled(name));
    return bundled ? bundled->size() : bytes;
  }
  Result<void> remove(const std::string& name) override {
    auto removed = tier_->remove(name);
    // One that was made again has the same name as the one in its bundle, and both are to go.
    const bool manifest = is_a(name, format::NameKind::manifest);
    if (removed ? !manifest : removed.error().code() != Code::not_found) return removed;
    if (manifest) {
      BELAY_ASSIGN(const bool hidden, hide_bundled(format::parse_name(name)->key));
      return hidden ? Result<void>{} : removed;
    }
    BELAY_ASSIGN(const auto bundled, open_bundled(name));
    return bundled ? Result<void>{} : removed;
  }
  Result<void> retire(const std::string& name) override {
    if (is_a(name, format::NameKind::manifest)) return remove(name);
    auto retired = tier_->retire(name);
    return retired || retired.error().code() != Code::not_found ? retired : remove(name);
  }
  Result<std::unique_ptr<os::File>> create_large(const std::string& name) override {
    return tier_->create_large(name);
  }
  Result<std::size_t> drop_retired() override { return tier_->drop_retired(); }
  Result<void> sync_names() override { return tier_->sync_names(); }
  Result<std::vector<std::string>> list() override {
    BELAY_ASSIGN(auto names, tier_->list());
    const Contents there = look(names);
    for (const auto& [id, known] : there.bundles) {
      if (!there.retired.contains(id.key))
        for (const format::CarriedManifest& manifest : known->rider.manifests)
          names.push_back(format::manifest_name(id.key, manifest.rank));
      for (const format::BundledSegment& segment : known->rider.segments)
        names.push_back(format::copy_name(segment.id));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }
  Result<os::Space> space() override { return tier_->space(); }
  const std::string& place() const override { return tier_->place(); }
  std::vector<std::shared_ptr<Bundle>> bundles_with(const SegmentId& segment) override {
    auto having = open_bundles({known_bundles(), {}, {}}, HasSegment{segment});
    if (having && !having->empty()) return *std::move(having);
    const auto names = tier_->list();
    if (!names) return {};
    having = open_bundles(look(*names), HasSegment{segment});
    return having ? *std::move(having) : std::vector<std::shared_ptr<Bundle>>();
  }

 private:
  /// What a bundle has. It is open only while something of it is: there may be many.
  struct Known {
    explicit Known(const std::shared_ptr<Bundle>& bundle)
        : rider(bundle->rider()), opened(bundle) {}

    const format::Rider rider;
    std::weak_ptr<Bundle> opened;  ///< of `mutex_`
  };
  using Bundles = std::map<SegmentId, std::shared_ptr<Known>>;
  struct Contents {
    Bundles bundles;
    std::set<VersionKey> retired;
    std::vector<std::shared_ptr<Bundle>> opened;  ///< some that need not be opened again at once
  };

  /// Which bundles and marks are there by now. One that cannot be read has nothing to give.
  Contents look(const std::vector<std::string>& names) {
    Contents there;
    const auto known = known_bundles();
    for (const std::string& name : names) {
      const auto parsed = format::parse_name(name);
      if (!parsed || parsed->temporary) continue;
      if (parsed->kind == format::NameKind::retired) there.retired.insert(parsed->key);
      if (parsed->kind != format::NameKind::bundle) continue;
      const SegmentId id{parsed->key, parsed->rank};
      if (const auto found = known.find(id); found != known.end())
        there.bundles.insert(*found);
      else if (const auto bundle = Bundle::open(*tier_, id)) {
        there.bundles.emplace(id, std::make_shared<Known>(*bundle));
        if (there.opened.size() < kMostOpened) there.opened.push_back(*bundle);
      }
    }
    const std::lock_guard lock(mutex_);
    known_ = there.bundles;
    return there;
  }
  Bundles known_bundles() {
    const std::lock_guard lock(mutex_);
    return known_;
  }

  Result<std::shared_ptr<Bundle>> open_bundle(const SegmentId& id, Known& known) {
    {
      const std::lock_guard lock(mutex_);
      if (auto opened = known.opened.lock()) return opened;
    }
    BELAY_ASSIGN(auto bundle, Bundle::open(*tier_, id));
    const std::lock_guard lock(mutex_);
    known.opened = bundle;
    return bundle;
  }

  /// Those of which `has` says that they have it, by rising version. Some may have gone meanwhile;
  /// an error if none of those that have it can be opened.
  template <class Has>
  Result<std::vector<std::shared_ptr<Bundle>>> open_bundles(const Contents& there, const Has& has) {
    std::vector<std::shared_ptr<Bundle>> having;
    std::optional<Error> reason;
    for (const auto& [id, known] : there.bundles) {
      if (!has(id, known->rider)) continue;
      auto bundle = open_bundle(id, *known);
      if (bundle)
        having.push_back(*std::move(bundle));
      else if (bundle.error().code() != Code::not_found)
        reason = bundle.error();
    }
    if (having.empty() && reason) return Unexpected(*reason);
    return having;
  }

  static bool is_a(const std::string& name, format::NameKind kind) {
    const auto parsed = format::parse_name(name);
    return parsed && parsed->kind == kind && !parsed->temporary;
  }

  /// Leaves the mark, if there are bundles of this version: also of those that cannot be read now,
  /// but perhaps later. False: there is nothing to be hidden.
  Result<bool> hide_bundled(VersionKey key) {
    BELAY_ASSIGN(const auto names, tier_->list());
    bool bundled = false;
    for (const std::string& name : names) {
      const auto parsed = format::parse_name(name);
      if (!parsed || parsed->temporary || parsed->key != key) continue;
      if (parsed->kind == format::NameKind::retired) return false;
      bundled = bundled || parsed->kind == format::NameKind::bundle;
    }
    if (!bundled) return false;
    // busy: somebody else of this node has left the mark.
    const auto mark = tier_->create(format::retired_name(key));
    if (!mark && mark.error().code() != Code::busy) return Unexpected(mark.error());
    return true;
  }

  /// A copy that has a file of its own, with what bundles have of it besides. Null: nothing.
  Result<std::unique_ptr<os::File>> open_joined(const std::string& name) {
    const auto parsed = format::parse_name(name);
    const SegmentId id{parsed->key, parsed->rank};
    BELAY_ASSIGN(const auto names, tier_->list());
    const Contents there = look(names);
    BELAY_ASSIGN(auto having, open_bundles(there, HasSegment{id}));
    if (having.empty()) return std::unique_ptr<os::File>();
    auto file =
        SegmentFile::open(*tier_, id, having.front()->header().origin.store, {}, FileKind::copy);
    if (!file) return open_bundled_copy(std::move(having), id);
    if (file->complete()) return std::unique_ptr<os::File>();
    return open_bundled_copy(std::move(having), id, *std::move(file));
  }

  /// Null: the name is in no bundle.
  Result<std::unique_ptr<os::File>> open_bundled(const std::string& name) {
    const auto parsed = format::parse_name(name);
    const bool manifest = parsed && parsed->kind == format::NameKind::manifest;
    const bool copy = parsed && parsed->kind == format::NameKind::copy;
    if ((!manifest && !copy) || parsed->temporary) return std::unique_ptr<os::File>();
    const SegmentId id{parsed->key, parsed->rank};
    BELAY_ASSIGN(const auto names, tier_->list());
    const Contents there = look(names);
    if (manifest && there.retired.contains(id.key)) return std::unique_ptr<os::File>();
    BELAY_ASSIGN(auto having,
                 open_bundles(there, [&](const SegmentId& its, const format::Rider& rider) {
                   return manifest ? its.key == id.key && rider.find_manifest(id.rank).has_value()
                                   : rider.find(id).has_value();
                 }));
    if (having.empty()) return std::unique_ptr<os::File>();
    if (copy) return open_bundled_copy(std::move(having), id);
    return open_carried_manifest(std::move(having.front()), id.rank);
  }

  std::unique_ptr<Tier> tier_;
  std::mutex mutex_;  ///< never held over an operation on files
  Bundles known_;
};

}  // namespace

std::unique_ptr<Tier> make_bundled_tier(std::unique_ptr<Tier> tier) {
  return std::make_unique<BundledTier>(std::move(tier));
}

}  // namespace belay::store
