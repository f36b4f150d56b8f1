// SPDX-License-Identifier: Apache-2.0
#include "format/names.hpp"

#include <charconv>
#include <concepts>
#include <utility>

#include <fmt/format.h>

namespace belay::format {
namespace {

constexpr std::string_view kTemporary = ".tmp";

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <std::unsigned_integral N>
bool take_number(std::string_view& text, N& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<NameKind> take_kind(std::string_view& text) {
  if (take_prefix(text, "segment-")) return NameKind::segment;
  if (take_prefix(text, "copy-")) return NameKind::copy;
  if (take_prefix(text, "shard-")) return NameKind::shard;
  if (take_prefix(text, "bundle-")) return NameKind::bundle;
  if (take_prefix(text, "manifest-")) return NameKind::manifest;
  if (take_prefix(text, "run-")) return NameKind::run;
  if (take_prefix(text, "closed-")) return NameKind::closed;
  if (take_prefix(text, "retired-")) return NameKind::retired;
  return std::nullopt;
}

std::string final_name(const ParsedName& parts) {
  switch (parts.kind) {
    case NameKind::segment:
      return segment_name({parts.key, parts.rank});
    case NameKind::copy:
      return copy_name({parts.key, parts.rank});
    case NameKind::shard:
      return shard_name({parts.key, parts.rank});
    case NameKind::bundle:
      return bundle_name({parts.key, parts.rank});
    case NameKind::manifest:
      return manifest_name(parts.key, parts.rank);
    case NameKind::run:
      return run_name(parts.key.run);
    case NameKind::closed:
      return closed_name(parts.key);
    case NameKind::retired:
      return retired_name(parts.key);
  }
  return {};
}

std::string make_name(const ParsedName& parts) {
  const std::string name = final_name(parts);
  return parts.temporary ? temporary_name(name) : name;
}

}  // namespace

std::string segment_name(const SegmentId& id) {
  return fmt::format("segment-{:06}-{:010}-{:06}", id.key.run, id.key.version, id.rank);
}

std::string copy_name(const SegmentId& id) {
  return fmt::format("copy-{:06}-{:010}-{:06}", id.key.run, id.key.version, id.rank);
}

std::string shard_name(const SegmentId& id) {
  return fmt::format("shard-{:06}-{:010}-{:06}", id.key.run, id.key.version, id.rank);
}

std::string bundle_name(const SegmentId& id) {
  return fmt::format("bundle-{:06}-{:010}-{:06}", id.key.run, id.key.version, id.rank);
}

std::string file_name(const SegmentId& id, FileKind kind) {
  if (kind == FileKind::shard) return shard_name(id);
  return kind == FileKind::copy ? copy_name(id) : segment_name(id);
}

std::string manifest_name(VersionKey key, Rank rank) {
  return fmt::format("manifest-{:06}-{:010}-{:06}", key.run, key.version, rank);
}

std::string run_name(Run run) { return fmt::format("run-{:06}", run); }

std::string closed_name(VersionKey last) {
  return fmt::format("closed-{:06}-{:010}", last.run, last.version);
}

std::string retired_name(VersionKey key) {
  return fmt::format("retired-{:06}-{:010}", key.run, key.version);
}

std::string temporary_name(const std::string& name) { return name + std::string(kTemporary); }

std::optional<ParsedName> parse_name(std::string_view name) {
  std::string_view rest = name;
  ParsedName parts;
  const auto kind = take_kind(rest);
  if (!kind || !take_number(rest, parts.key.run)) return std::nullopt;
  parts.kind = *kind;
  if (parts.kind != NameKind::run &&
      !(take_prefix(rest, "-") && take_number(rest, parts.key.version)))
    return std::nullopt;
  const bool of_a_rank = parts.kind != NameKind::run && parts.kind != NameKind::closed &&
                         parts.kind != NameKind::retired;
  if (of_a_rank && !(take_prefix(rest, "-") && take_number(rest, parts.rank))) return std::nullopt;
  parts.temporary = take_prefix(rest, kTemporary);
  // Making the name again rejects every other spelling of the same numbers, and whatever is left.
  if (make_name(parts) != name) return std::nullopt;
  return parts;
}

}  // namespace belay::format
