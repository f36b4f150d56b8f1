// SPDX-License-Identifier: Apache-2.0
#include "vote/recovery.hpp"

#include "base/mistakes.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace belay::vote {
namespace {

// A number may leave no trace: its version was killed, or failed and was cleared away. For every
// run since the last trace that did not end well a gap is left, wider than any row of such
// versions.
constexpr Version kGap = 16;
// The same if only the global tier knows of the last run: nodes have taken numbers since its last
// version there.
constexpr Version kGapWithoutNodes = 4096;

/// Ranks whose manifest of a version was found, on any node.
struct Presence {
  std::set<Rank> manifests;
  std::set<Rank> readable;
  std::uint32_t strength = 0;  ///< the same in all manifests that can be read
  bool dump = false;
  bool on_nodes = false;
  std::set<Rank> global;  ///< those whose manifest was found on the global tier and is readable
  bool on_global = false;
};

std::optional<std::vector<SegmentId>> own_segments(const OwnSurvey& own, bool present,
                                                   VersionKey key) {
  for (const Manifest& manifest : own.readable) {
    if (manifest.origin.key != key) continue;
    std::vector<SegmentId> segments;
    for (const SegmentRef& segment : manifest.segments) segments.push_back(segment.id);
    return segments;
  }
  if (present) return {};
  return std::vector<SegmentId>{};
}

/// Has any version ever existed? A job that was killed during its very first checkpoint leaves
/// manifests of some ranks too, and must be able to start again. What proves existence: the settled
/// mark, a manifest of every rank, a manifest that names a parent, or a node without the record of
/// a run in which others have voted (it was lost: recording the run comes before any vote).
bool has_existed(const std::vector<Survey>& surveys, const std::map<VersionKey, Presence>& keys) {
  Run least_record = surveys.front().highest_record;
  for (const Survey& survey : surveys) {
    least_record = std::min(least_record, survey.highest_record);
    if (survey.settled) return true;
    for (const SurveyedManifest& manifest : survey.manifests)
      if (manifest.parent != VersionKey{}) return true;
  }
  // What dump() has taken says nothing of checkpoints.
  return std::any_of(keys.begin(), keys.end(), [&](const auto& entry) {
    if (entry.second.dump) return false;
    return entry.second.manifests.size() == surveys.size() || entry.first.run > least_record;
  });
}

Version next_number(const std::vector<Survey>& surveys) {
  VersionKey highest{.run = 1, .version = 0};
  Run last_run = 0;
  Run closed_run = 0;
  Run last_record = 0;
  for (const Survey& survey : surveys) {
    last_record = std::max(last_record, survey.highest_record);
    if (survey.highest_number.version > highest.version) highest = survey.highest_number;
    last_run = std::max(last_run, survey.highest_run);
    closed_run = std::max(closed_run, survey.closed_run);
  }
  const Run sure = std::max(highest.run - 1, closed_run);  // these runs took no higher number
  const Version gap = last_record < last_run ? kGapWithoutNodes : kGap;
  return highest.version + 1 + gap * (last_run - std::min(last_run, sure));
}

}  // namespace

Recovery recover(const OwnSurvey& own, const std::vector<Survey>& surveys, Rank rank) {
  Recovery recovery;
  std::map<VersionKey, Presence> keys;
  Version newest_trace = 0;
  Version highest_version = 0;
  for (const Survey& survey : surveys) {
    highest_version = std::max(highest_version, survey.highest_number.version);
    for (const SurveyedManifest& manifest : survey.manifests) {
      Presence& presence = keys[manifest.key];
      presence.manifests.insert(manifest.rank);
      if (manifest.readable) presence.readable.insert(manifest.rank);
      presence.strength = std::max(presence.strength, manifest.level.losses());
      presence.dump = presence.dump || manifest.dump;
      const bool global =
          manifest.place < survey.places.size() && survey.places[manifest.place].global;
      (global ? presence.on_global : presence.on_nodes) = true;
      if (global && manifest.readable) presence.global.insert(manifest.rank);
    }
  }
  for (auto entry = keys.rbegin(); entry != keys.rend(); ++entry) {
    const auto& [key, presence] = *entry;
    const std::size_t needed = planted(Mistake::agree_on_maximum) ? 1 : surveys.size();
    const bool exists = presence.readable.size() >= needed;
    store::KnownVersion version{
        .key = key,
        .exists = exists,
        .segments = own_segments(own, presence.manifests.contains(rank), key),
        .strength = presence.strength,
        .dump = presence.dump,
        .here = presence.on_nodes};
    if (presence.on_global)
      recovery.global.push_back({.key = key,
                                 .exists = presence.global.size() >= surveys.size(),
                                 .segments = version.segments,
                                 .dump = presence.dump});
    if (!version.here) version.segments = std::vector<SegmentId>{};
    recovery.known.push_back(std::move(version));
    if (presence.dump) continue;
    if (exists && !recovery.latest) recovery.latest = key.version;
    if (newest_trace == 0) newest_trace = key.version;
  }
  recovery.next_number = next_number(surveys);
  recovery.settled = std::any_of(surveys.begin(), surveys.end(),
                                 [](const Survey& survey) { return survey.settled; });
  if (!recovery.latest && has_existed(surveys, keys))
    recovery.latest = newest_trace != 0 ? newest_trace : highest_version;
  return recovery;
}

}  // namespace belay::vote
