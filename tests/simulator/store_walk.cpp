// SPDX-License-Identifier: Apache-2.0
#include "simulator/store_walk.hpp"

#include "fingerprint/hasher.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "simulator/damage.hpp"
#include "simulator/stripe_walk.hpp"
#include "store/bundle.hpp"
#include "store/places.hpp"
#include "store/segment_file.hpp"
#include "store/tier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

namespace belay::simulator {

namespace {

using Node = std::size_t;  ///< a directory, in the order in which they were seen

struct Content {
  SegmentId id;
  Fingerprint fingerprint;
  std::uint32_t length = 0;

  bool operator<(const Content& other) const {
    const auto parts = [](const Content& c) {
      return std::tuple(c.id, c.fingerprint.low, c.fingerprint.high, c.length);
    };
    return parts(*this) < parts(other);
  }
};

class Walk {
 public:
  Walk(os::MemoryFiles& files, Rank ranks) : files_(files), ranks_(ranks) {}

  StoreWalk run() {
    std::set<std::string> directories;
    for (const std::string& path : files_.paths())
      directories.insert(path.substr(0, path.rfind('/')));
    for (const std::string& directory : directories) look_into(directory);
    walk_.wrong_stripes =
        stripes_.judge([this](const SegmentId& id, const auto& block, std::uint32_t losses) {
          auto& strength = parity_[{id, block.fingerprint, block.length}];
          strength = std::max<std::size_t>(strength, losses + 1);
        });
    for (auto& [key, version] : walk_.versions) judge(key, version);
    stripes_.complete(counted_on_);
    for (const auto& [id, path] : stripes_.dead()) walk_.dead.emplace(id.key, path);
    for (const auto& [id, path] : segments_)
      if (counted_on_.count(id) == 0) walk_.dead.emplace(id.key, path);
    for (const auto& [path, bundle] : bundles_)
      if (is_dead(*bundle)) walk_.dead.emplace(bundle->id().key, path);
    return std::move(walk_);
  }

 private:
  struct Found {
    Manifest manifest;
    std::set<Node> nodes;
  };

  void look_into(const std::string& directory);
  void look_at(store::Tier& tier, const std::string& file);
  void look_at_manifest(store::Tier& tier, Node node, const format::ParsedName& name);
  void look_at_blocks(store::Tier& tier, Node node, const format::ParsedName& name);
  void look_at_bundle(store::Tier& tier, const std::string& path, const SegmentId& id);
  /// Does no version count on its blocks, and none consist of its manifests?
  bool is_dead(const store::Bundle& bundle) const {
    for (const auto& segment : bundle.rider().segments)
      if (counted_on_.contains(segment.id)) return false;
    const auto version = walk_.versions.find(bundle.id().key);
    return version == walk_.versions.end() || version->second.on_global.empty();
  }
  void judge(VersionKey key, WalkedVersion& version);
  void judge_blocks(const Manifest& manifest, WalkedVersion& version);
  /// `what` names the thing if it turns out to be the rarest so far.
  template <class Name>
  void count(WalkedVersion& version, const std::set<Node>& places, std::size_t parity,
             const Name& what) {
    if (places.empty() && parity == 0) version.whole = false;
    const auto copies = static_cast<std::size_t>(std::count_if(
        places.begin(), places.end(), [&](Node node) { return !global_.contains(node); }));
    if (copies == places.size()) version.global_whole = false;
    const std::size_t nodes = std::max(copies, parity);
    if (!version.rarest.empty() && nodes >= version.least_nodes) return;
    version.least_nodes = nodes;
    version.rarest = what();
  }

  os::MemoryFiles& files_;
  Rank ranks_;
  StoreWalk walk_;
  std::map<std::string, Node> directories_;
  std::set<Node> global_;
  std::map<SegmentId, Found> manifests_;  ///< by version and rank
  std::map<Content, std::set<Node>> blocks_;
  StripeWalk stripes_;
  std::map<Content, std::size_t> parity_;  ///< what stripes are worth for these blocks
  std::map<SegmentId, std::string> segments_;
  std::map<std::string, std::shared_ptr<store::Bundle>> bundles_;
  std::set<SegmentId> counted_on_;
};

/// With what lies in bundles.
void Walk::look_into(const std::string& directory) {
  const auto tier = store::open_place(files_, directory);
  const auto names = tier->list();
  if (!names) return;
  for (const std::string& name : *names) look_at(*tier, name);
}

void Walk::look_at_bundle(store::Tier& tier, const std::string& path, const SegmentId& id) {
  if (auto bundle = store::Bundle::open(tier, id))
    bundles_.emplace(path, *std::move(bundle));
  else
    walk_.unread = std::max(walk_.unread, id.key);
}

void Walk::look_at(store::Tier& tier, const std::string& file) {
  const auto name = format::parse_name(file);
  if (!name || name->temporary) return;
  const std::string& directory = tier.place();
  const Node node = directories_.emplace(directory, directories_.size()).first->second;
  const std::string path = directory + "/" + file;
  if (is_global(path)) global_.insert(node);
  const SegmentId id{name->key, name->rank};
  if (name->kind == format::NameKind::manifest)
    look_at_manifest(tier, node, *name);
  else if (name->kind == format::NameKind::segment || name->kind == format::NameKind::copy)
    look_at_blocks(tier, node, *name);
  else if (name->kind == format::NameKind::shard)
    stripes_.add_shard(files_, path, node, id);
  else if (name->kind == format::NameKind::bundle)
    look_at_bundle(tier, path, id);
}

void Walk::look_at_manifest(store::Tier& tier, Node node, const format::ParsedName& name) {
  WalkedVersion& version = walk_.versions[name.key];
  const auto bytes = store::read_whole(tier, format::manifest_name(name.key, name.rank),
                                       format::check_manifest_front);
  if (!bytes) return;
  auto manifest = format::decode_manifest(*bytes);
  if (!manifest || manifest->origin.key != name.key || manifest->origin.rank != name.rank) return;
  version.manifests.insert(name.rank);
  version.level = manifest->level;
  (global_.contains(node) ? version.on_global : version.on_nodes).insert(name.rank);
  for (const SegmentRef& segment : manifest->segments) counted_on_.insert(segment.id);
  Found& found = manifests_[{name.key, name.rank}];
  if (found.nodes.empty()) found.manifest = *std::move(manifest);
  found.nodes.insert(node);
}

void Walk::look_at_blocks(store::Tier& tier, Node node, const format::ParsedName& name) {
  const SegmentId id{name.key, name.rank};
  const auto kind = name.kind == format::NameKind::copy ? FileKind::copy : FileKind::segment;
  const std::string path = tier.place() + "/" + format::file_name(id, kind);
  const auto bytes = files_.peek(path);  // none if it is in a bundle
  if (bytes) segments_.emplace(id, path);
  auto file = store::SegmentFile::hold(tier, id, kind);
  if (!file) return;
  std::vector<std::byte> front(format::kFileAlignment);
  const auto got = file->file().read(0, front);
  if (!got || *got < format::kSegmentHeaderBytes) return;
  const auto header = format::decode_segment_header(
      std::span<const std::byte>(front).first(format::kSegmentHeaderBytes));
  if (!header || !file->load(header->origin.store, {})) return;
  const auto hasher = fingerprint::make_hasher(header->hash, header->origin.seed);
  std::vector<bool> good;
  for (const store::StoredBlock& block : file->blocks()) {
    std::vector<std::byte> content(block.length);
    const auto read = file->file().read(block.offset, content);
    good.push_back(read && *read == block.length && hasher->hash(content) == block.fingerprint);
    if (good.back()) blocks_[{id, block.fingerprint, block.length}].insert(node);
  }
  if (bytes && kind == FileKind::segment && !global_.contains(node))
    stripes_.add_segment(id, {node, *bytes, file->blocks(), std::move(good)});
}

void Walk::judge(VersionKey key, WalkedVersion& version) {
  for (const Rank rank : version.manifests) {
    const Found& found = manifests_.at({key, rank});
    count(version, found.nodes, 0, [&] { return fmt::format("the manifest of rank {}", rank); });
    judge_blocks(found.manifest, version);
  }
  version.provable = version.manifests.size() == ranks_ && version.whole;
}

void Walk::judge_blocks(const Manifest& manifest, WalkedVersion& version) {
  for (const RegionRecord& region : manifest.regions)
    for (std::uint64_t i = 0; i < manifest.blocks_of(region); ++i) {
      const std::uint64_t block = region.first_block + i;
      const SegmentId holder = manifest.segments[manifest.holders[block]].id;
      std::set<Node> nodes;
      std::size_t parity = 0;
      for (const SegmentRef& segment : manifest.segments) {
        if (segment.id.key != holder.key) continue;
        const Content content{segment.id, manifest.fingerprints[block],
                              manifest.length_of(region, i)};
        if (const auto found = blocks_.find(content); found != blocks_.end())
          nodes.insert(found->second.begin(), found->second.end());
        if (const auto found = parity_.find(content); found != parity_.end())
          parity = std::max(parity, found->second);
      }
      if (version.on_global.contains(manifest.origin.rank) &&
          std::none_of(nodes.begin(), nodes.end(),
                       [&](Node node) { return global_.contains(node); }))
        version.global_blocks = false;
      count(version, nodes, parity, [&] {
        return fmt::format("block {} of region '{}' of rank {}, from version {},", i, region.name,
                           manifest.origin.rank, holder.key.version);
      });
    }
}

}  // namespace

std::optional<VersionKey> StoreWalk::newest_provable() const {
  for (auto version = versions.rbegin(); version != versions.rend(); ++version)
    if (version->second.provable) return version->first;
  return {};
}

bool StoreWalk::provable(Version version) const {
  return std::any_of(versions.begin(), versions.end(), [&](const auto& entry) {
    return entry.first.version == version && entry.second.provable;
  });
}

StoreWalk walk_store(os::MemoryFiles& files, Rank ranks) { return Walk(files, ranks).run(); }

}  // namespace belay::simulator
