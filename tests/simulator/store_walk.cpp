// SPDX-License-Identifier: Apache-2.0
#include "simulator/store_walk.hpp"

#include "fingerprint/hasher.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "simulator/damage.hpp"
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
    for (const std::string& path : files_.paths()) look_at(path);
    for (auto& [key, version] : walk_.versions) judge(key, version);
    for (const auto& [id, path] : segments_)
      if (counted_on_.count(id) == 0) walk_.dead.emplace(id.key, path);
    return std::move(walk_);
  }

 private:
  struct Found {
    Manifest manifest;
    std::set<Node> nodes;
  };

  void look_at(const std::string& path);
  void look_at_manifest(const std::string& path, Node node, const format::ParsedName& name);
  void look_at_blocks(const std::string& path, Node node, const format::ParsedName& name);
  void judge(VersionKey key, WalkedVersion& version);
  void judge_blocks(const Manifest& manifest, WalkedVersion& version);
  /// `what` names the thing if it turns out to be the rarest so far.
  template <class Name>
  void count(WalkedVersion& version, const std::set<Node>& places, const Name& what) {
    if (places.empty()) version.whole = false;
    const auto nodes = static_cast<std::size_t>(std::count_if(
        places.begin(), places.end(), [&](Node node) { return !global_.contains(node); }));
    if (nodes == places.size()) version.global_whole = false;
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
  std::map<SegmentId, std::string> segments_;
  std::set<SegmentId> counted_on_;
};

void Walk::look_at(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const auto name = format::parse_name(std::string_view(path).substr(slash + 1));
  if (!name || name->temporary) return;
  const Node node = directories_.emplace(path.substr(0, slash), directories_.size()).first->second;
  if (is_global(path)) global_.insert(node);
  if (name->kind == format::NameKind::manifest)
    look_at_manifest(path, node, *name);
  else if (name->kind == format::NameKind::segment || name->kind == format::NameKind::copy)
    look_at_blocks(path, node, *name);
}

void Walk::look_at_manifest(const std::string& path, Node node, const format::ParsedName& name) {
  WalkedVersion& version = walk_.versions[name.key];
  const auto bytes = files_.peek(path);
  if (!bytes) return;
  auto manifest = format::decode_manifest(*bytes);
  if (!manifest || manifest->origin.key != name.key || manifest->origin.rank != name.rank) return;
  version.manifests.insert(name.rank);
  version.level = manifest->level;
  (is_global(path) ? version.on_global : version.on_nodes).insert(name.rank);
  for (const SegmentRef& segment : manifest->segments) counted_on_.insert(segment.id);
  Found& found = manifests_[{name.key, name.rank}];
  if (found.nodes.empty()) found.manifest = *std::move(manifest);
  found.nodes.insert(node);
}

void Walk::look_at_blocks(const std::string& path, Node node, const format::ParsedName& name) {
  const SegmentId id{name.key, name.rank};
  segments_.emplace(id, path);
  const auto bytes = files_.peek(path);
  if (!bytes) return;
  const auto tier = store::make_local_tier(files_, path.substr(0, path.rfind('/')));
  const auto kind =
      name.kind == format::NameKind::copy ? FileKind::copy : FileKind::segment;
  auto file = store::SegmentFile::hold(*tier, id, kind);
  if (!file || bytes->size() < format::kSegmentHeaderBytes) return;
  const auto header = format::decode_segment_header(
      std::span<const std::byte>(*bytes).first(format::kSegmentHeaderBytes));
  if (!header || !file->load(header->origin.store, {})) return;
  const auto hasher = fingerprint::make_hasher(header->hash, header->origin.seed);
  for (const store::StoredBlock& block : file->blocks()) {
    if (block.end() > bytes->size()) continue;
    const auto content = std::span<const std::byte>(*bytes).subspan(block.offset, block.length);
    if (hasher->hash(content) == block.fingerprint)
      blocks_[{id, block.fingerprint, block.length}].insert(node);
  }
}

void Walk::judge(VersionKey key, WalkedVersion& version) {
  for (const Rank rank : version.manifests) {
    const Found& found = manifests_.at({key, rank});
    count(version, found.nodes, [&] { return fmt::format("the manifest of rank {}", rank); });
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
      for (const SegmentRef& segment : manifest.segments) {
        if (segment.id.key != holder.key) continue;
        const auto found =
            blocks_.find({segment.id, manifest.fingerprints[block], manifest.length_of(region, i)});
        if (found != blocks_.end()) nodes.insert(found->second.begin(), found->second.end());
      }
      count(version, nodes, [&] {
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
