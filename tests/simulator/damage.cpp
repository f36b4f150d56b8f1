// SPDX-License-Identifier: Apache-2.0
#include "simulator/damage.hpp"

#include "format/manifest.hpp"
#include "format/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace belay::simulator {

namespace {

std::optional<format::ParsedName> parse_path(const std::string& path) {
  return format::parse_name(std::string_view(path).substr(path.rfind('/') + 1));
}

/// The manifests that name this segment, by version and rank.
std::set<SegmentId> manifests_with(const os::MemoryFiles& files, const SegmentId& segment) {
  std::set<SegmentId> manifests;
  for (const std::string& path : files.paths()) {
    const auto name = parse_path(path);
    if (!name || name->kind != format::NameKind::manifest || name->temporary) continue;
    const auto bytes = files.peek(path);
    if (!bytes) continue;
    const auto manifest = format::decode_manifest(*bytes);
    if (!manifest) continue;
    const auto& segments = manifest->segments;
    if (std::any_of(segments.begin(), segments.end(),
                    [&](const SegmentRef& ref) { return ref.id == segment; }))
      manifests.insert({name->key, name->rank});
  }
  return manifests;
}

std::set<Version> versions_with(const os::MemoryFiles& files, const SegmentId& segment) {
  std::set<Version> versions;
  for (const SegmentId& manifest : manifests_with(files, segment))
    versions.insert(manifest.key.version);
  return versions;
}

bool is_settled_mark(const std::string& path) {
  return path.ends_with("/" + std::string(format::kSettledName));
}

/// The versions that count on the file.
std::set<Version> versions_on(const os::MemoryFiles& files, const std::string& path) {
  const auto name = parse_path(path);
  if (!name || name->temporary) return {};
  if (name->kind == format::NameKind::manifest) return {name->key.version};
  if (name->kind == format::NameKind::segment) return versions_with(files, {name->key, name->rank});
  return {};
}

/// Copies and shards are read only when something is lost, and so are the blocks of a member of a
/// stripe that no version has any more, and those of a segment that only other ranks count on.
bool is_read_late(const os::MemoryFiles& files, const std::vector<std::string>& paths,
                  const std::string& path) {
  const auto name = parse_path(path);
  if (!name) return false;
  if (name->kind == format::NameKind::copy || name->kind == format::NameKind::shard) return true;
  if (name->kind != format::NameKind::segment) return false;
  const auto manifests = manifests_with(files, {name->key, name->rank});
  if (std::any_of(manifests.begin(), manifests.end(),
                  [&](const SegmentId& manifest) { return manifest.rank != name->rank; }))
    return true;
  return std::any_of(paths.begin(), paths.end(), [&](const std::string& other) {
    const auto shard = parse_path(other);
    return shard && shard->kind == format::NameKind::shard && shard->key == name->key;
  });
}

}  // namespace

bool is_global(const std::string& path) { return path.starts_with("/global/"); }

bool has_blocks(const std::string& path) {
  const auto name = parse_path(path);
  return name && !name->temporary &&
         (name->kind == format::NameKind::bundle || name->kind == format::NameKind::segment ||
          name->kind == format::NameKind::copy);
}

bool StoreCensus::traces() const {
  const auto any = [](const auto& counts) {
    return std::any_of(counts.begin(), counts.end(), [](std::size_t n) { return n > 0; });
  };
  return any(manifests) || any(segments);
}

StoreCensus take_census(const os::MemoryFiles& files, Rank ranks) {
  StoreCensus census;
  census.manifests.resize(ranks);
  census.segments.resize(ranks);
  for (const std::string& path : files.paths()) {
    const auto name = parse_path(path);
    if (!name) continue;
    census.highest_number = std::max(census.highest_number, name->key.version);
    if (name->temporary) {
      ++census.temporaries;
    } else if (name->kind == format::NameKind::manifest) {
      census.versions.insert(name->key.version);
      ++census.manifests.at(name->rank);
    } else if (name->kind == format::NameKind::segment) {
      ++census.segments.at(name->rank);
    } else if (name->kind == format::NameKind::copy || name->kind == format::NameKind::shard ||
               name->kind == format::NameKind::bundle) {
      ++census.copies;
    }
  }
  return census;
}

DamageDone damage_store(os::MemoryFiles& files, SimRandom& random) {
  const auto paths = files.paths();
  if (paths.empty()) return {};
  const std::string& path = paths[random.below(paths.size())];
  const auto bytes = files.peek(path);
  const std::uint64_t size = bytes ? bytes->size() : 0;

  DamageDone done;
  done.settled_mark =
      is_settled_mark(path) || std::none_of(paths.begin(), paths.end(), is_settled_mark);
  done.versions = versions_on(files, path);
  done.path = path;
  Result<void> damaged;
  const std::uint64_t kind = random.below(4);
  if (kind == 0 || size == 0) {
    done.what = fmt::format("erase {}", path);
    damaged = files.erase(path);
  } else if (kind == 1) {
    const std::uint64_t left = random.below(size);
    done.what = fmt::format("cut {} to {} bytes", path, left);
    damaged = files.cut(path, left);
  } else {
    const std::uint64_t bit = random.below(8 * size);
    done.what = fmt::format("flip bit {} of byte {} of {}", bit % 8, bit / 8, path);
    const bool is_late = is_read_late(files, paths, path);
    damaged = files.flip(path, bit);
    if (is_late) done.hidden = bit;
  }
  if (!damaged) done.what += ": " + damaged.error().message();
  return done;
}

std::string any_node(os::MemoryFiles& files, SimRandom& random) {
  std::vector<std::string> nodes;
  for (const std::string& path : files.paths()) {
    if (is_global(path)) continue;
    const std::string directory = path.substr(0, path.rfind('/'));
    const std::string node = directory.substr(directory.rfind('/') + 1);
    if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
  }
  return nodes.empty() ? std::string() : nodes[random.below(nodes.size())];
}

DamageDone lose_node(os::MemoryFiles& files, const std::string& node) {
  DamageDone done;
  done.settled_mark = true;
  std::string directory;
  for (const std::string& path : files.paths()) {
    const bool is_here = !is_global(path) && path.find("/" + node + "/") != std::string::npos;
    if (is_here) {
      directory = path.substr(0, path.rfind('/'));
      done.versions.merge(versions_on(files, path));
    } else if (is_settled_mark(path)) {
      done.settled_mark = false;
    }
  }
  if (directory.empty()) return {};
  done.what = fmt::format("{} is lost", directory);
  if (auto erased = files.erase(directory); !erased) done.what += ": " + erased.error().message();
  return done;
}

}  // namespace belay::simulator
