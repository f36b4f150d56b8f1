// SPDX-License-Identifier: Apache-2.0
#include "session/restorer.hpp"

#include "base/try.hpp"
#include "session/segment_read.hpp"

#include <algorithm>
#include <unordered_map>

namespace belay::session {
namespace {

std::string describe(const ElementType& type) {
  if (!type.name.empty()) return fmt::format("{} ({} bytes)", type.name, type.bytes);
  if (type.kind == ElementKind::opaque) return fmt::format("opaque ({} bytes)", type.bytes);
  return name_of(type.kind);
}

std::string names_of(const Manifest& manifest) {
  constexpr std::size_t kMost = 12;
  std::string names;
  for (std::size_t i = 0; i < manifest.regions.size() && i < kMost; ++i)
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", manifest.regions[i].name);
  if (manifest.regions.size() > kMost) names += ", ...";
  return names.empty() ? "no regions" : names;
}

/// How many bytes of the record to take.
Result<std::uint64_t> fit(RegionAccess& access, const RegionRecord& record,
                          const RestoreOptions& options, const std::string& what) {
  const ElementType type = access.type();
  if (type != record.type)
    return fail(Code::invalid_argument,
                "restore: region '{}' holds {} in {}, but is protected as {}; protect it with the "
                "type that it was saved with",
                record.name, describe(record.type), what, describe(type));
  BELAY_ASSIGN(const auto room,
               within(fmt::format("restore: region '{}'", record.name), access.room(record.bytes)));
  if (room.size() == record.bytes) return record.bytes;
  if (options.allow_resized) return std::min<std::uint64_t>(room.size(), record.bytes);
  return fail(
      Code::invalid_argument,
      "restore: region '{}' has {} bytes in {}, but {} bytes are protected; protect it with "
      "its saved size, protect a std::vector (which is resized), or set allow_resized to "
      "fill what fits",
      record.name, record.bytes, what, room.size());
}

void warn_of_unprotected(const Manifest& manifest, const capture::Regions& regions,
                         const RestoreOptions& options, const std::string& what, Log& log) {
  if (!options.regions.empty()) return;
  for (const RegionRecord& record : manifest.regions)
    if (regions.find(record.name) == nullptr)
      log.warn("restore: {} has region '{}', which is not protected: it was not restored", what,
               record.name);
}

Result<std::vector<std::string>> wanted_names(const capture::Regions& regions,
                                              const RestoreOptions& options) {
  std::vector<std::string> names = options.regions;
  for (const std::string& name : names)
    if (regions.find(name) == nullptr)
      return fail(Code::not_found, "restore: region '{}' is not protected; protect it first", name);
  if (names.empty())
    for (const auto& [name, region] : regions) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

Result<std::vector<RegionMatch>> match_regions(const Manifest& manifest,
                                               const capture::Regions& regions,
                                               const RestoreOptions& options,
                                               const std::string& what, Log& log) {
  std::unordered_map<std::string_view, const RegionRecord*> records;
  for (const RegionRecord& record : manifest.regions) records.emplace(record.name, &record);
  BELAY_ASSIGN(const auto names, wanted_names(regions, options));
  std::vector<RegionMatch> matches;
  for (const std::string& name : names) {
    const auto found = records.find(name);
    if (found == records.end()) {
      if (options.allow_missing) continue;
      return fail(Code::not_found,
                  "restore: {} has no region '{}' (it has {}); protect it under the name that it "
                  "was saved with, unprotect it, or set allow_missing to leave it alone",
                  what, name, names_of(manifest));
    }
    RegionAccess* access = regions.find(name)->access.get();
    BELAY_ASSIGN(const std::uint64_t bytes, fit(*access, *found->second, options, what));
    matches.push_back({name, access, found->second, bytes});
  }
  warn_of_unprotected(manifest, regions, options, what, log);
  return matches;
}

Result<LostBlocks> read_regions(Equipment& equipment, os::Parallel& readers,
                                const Manifest& manifest, const std::vector<RegionMatch>& matches) {
  std::vector<std::vector<WantedBlock>> wanted(manifest.segments.size());
  for (const RegionMatch& match : matches) {
    const RegionRecord& record = *match.record;
    BELAY_ASSIGN(const auto room, match.access->room(record.bytes));
    if (room.size() < match.bytes)
      return fail(Code::invalid_argument,
                  "restore: region '{}' changed its size meanwhile; is its memory protected under "
                  "two names?",
                  match.name);
    for (std::uint64_t i = 0; i * manifest.block_bytes < match.bytes; ++i) {
      const std::uint64_t block = record.first_block + i;
      const std::uint32_t length = manifest.length_of(record, i);
      const std::uint64_t fits =
          std::min<std::uint64_t>(length, match.bytes - i * manifest.block_bytes);
      wanted[manifest.holders[block]].push_back({manifest.fingerprints[block], length,
                                                 static_cast<std::uint32_t>(fits),
                                                 room.data() + i * manifest.block_bytes, &record});
    }
  }
  std::vector<UnreadBlocks> unread(wanted.size());
  BELAY_TRY(read_blocks(equipment, readers, manifest, wanted, unread));
  LostBlocks lost;
  for (std::size_t i = 0; i < unread.size(); ++i) {
    for (const WantedBlock& block : unread[i].blocks)
      lost.blocks.push_back({block, manifest.segments[i].id});
    if (!lost.reason) lost.reason = std::move(unread[i].reason);
  }
  return lost;
}

Result<void> hand_over(const std::vector<RegionMatch>& matches) {
  for (const RegionMatch& match : matches)
    BELAY_TRY(within(fmt::format("restore: region '{}'", match.name), match.access->restored()));
  return {};
}

}  // namespace belay::session
