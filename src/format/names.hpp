// SPDX-License-Identifier: Apache-2.0
// Names of files in a node's directory. Every name says run, version and rank.
#pragma once

#include "base/nouns.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace belay::format {

std::string segment_name(const SegmentId& id);  ///< segment-000001-0000000012-000003
/// A copy, perhaps partial, of that segment, on another node: copy-000001-0000000012-000003.
std::string copy_name(const SegmentId& id);
/// `id` as shard_id() makes it: shard-000001-0000000012-000768.
std::string shard_name(const SegmentId& id);
std::string file_name(const SegmentId& id, FileKind kind);
/// Blocks and manifests of many ranks; `id.rank` is the number of their set:
/// bundle-000001-0000000012-000003.
std::string bundle_name(const SegmentId& id);
/// The manifests in bundles of this version do not count any more: retired-000001-0000000012.
std::string retired_name(VersionKey key);
std::string manifest_name(VersionKey key, Rank rank);  ///< manifest-000001-0000000012-000003
std::string run_name(Run run);                         ///< run-000001
/// The last run that ended well, and its last number: closed-000001-0000000012.
std::string closed_name(VersionKey last);
std::string temporary_name(const std::string& name);  ///< name + ".tmp"
inline constexpr std::string_view kSettledName = "settled";
inline constexpr std::string_view kLockName = "lock";

enum class NameKind { segment, copy, shard, bundle, manifest, run, closed, retired };

struct ParsedName {
  NameKind kind = NameKind::segment;
  bool temporary = false;
  VersionKey key;  ///< of a run: only key.run
  Rank rank = 0;   ///< of a shard or bundle: its number
};

/// Exactly the names that the functions above make; anything else is none of ours.
std::optional<ParsedName> parse_name(std::string_view name);

}  // namespace belay::format
