// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/version_watch.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "store/tier.hpp"
#include "vote/survey.hpp"

#include <algorithm>

namespace belay::tool {

Result<void> VersionWatch::look() {
  const auto entries = files_.list(store_);
  if (!entries && entries.error().code() == Code::not_found) return {};
  if (!entries) return Unexpected(entries.error());
  for (const os::DirectoryEntry& entry : *entries)
    if (entry.kind == os::EntryKind::directory && entry.name.starts_with("node-"))
      BELAY_TRY(look_into(store_ + "/" + entry.name));
  return {};
}

Result<void> VersionWatch::look_into(const std::string& directory) {
  const auto tier = store::make_local_tier(files_, directory);
  BELAY_ASSIGN(const auto names, tier->list());
  for (const std::string& name : names) {
    const auto parsed = format::parse_name(name);
    if (!parsed) continue;
    highest_run_ = std::max(highest_run_, parsed->key.run);
    if (parsed->kind != format::NameKind::manifest || parsed->temporary) continue;
    if (!read_.emplace(parsed->key, parsed->rank).second) continue;
    auto manifest = vote::load_manifest(*tier, parsed->key, parsed->rank, std::nullopt);
    if (!manifest && manifest.error().code() == Code::not_found) continue;  // retired meanwhile
    if (!manifest) return Unexpected(manifest.error());
    manifest->holders = {};
    manifest->segments = {};
    pending_[parsed->key].emplace(parsed->rank, *std::move(manifest));
    complete(parsed->key);
  }
  return {};
}

void VersionWatch::complete(VersionKey key) {
  auto& ranks = pending_[key];
  const Manifest& first = ranks.begin()->second;
  if (ranks.size() < first.origin.ranks) return;
  SeenVersion version{.key = key, .parent = first.parent, .ranks = {}};
  for (auto& rank : ranks) version.ranks.push_back(std::move(rank.second));
  pending_.erase(key);
  const auto place = std::upper_bound(
      versions_.begin(), versions_.end(), key,
      [](VersionKey wanted, const SeenVersion& other) { return wanted < other.key; });
  versions_.insert(place, std::move(version));
}

std::pair<std::size_t, std::size_t> VersionWatch::incomplete() const {
  if (pending_.empty()) return {0, 0};
  const auto& ranks = pending_.rbegin()->second;
  return {ranks.size(), ranks.begin()->second.origin.ranks};
}

}  // namespace belay::tool
