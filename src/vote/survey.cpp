// SPDX-License-Identifier: Apache-2.0
#include "vote/survey.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/wire.hpp"

#include <algorithm>

namespace belay::vote {
namespace {

// Beyond this the next number might not fit any more.
constexpr std::uint64_t kHighestNumber = std::uint64_t{1} << 62;

void add_identity(Survey& survey, const Identity& identity) {
  auto& all = survey.identities;
  if (std::find(all.begin(), all.end(), identity) == all.end()) all.push_back(identity);
}

/// Run records and the settled mark say whose store this is.
void survey_record(store::Tier& tier, const std::string& name, Survey& survey, Log& log) {
  auto bytes = store::read_whole(tier, name, format::check_run_record_front);
  auto record =
      bytes ? format::decode_run_record(*bytes) : Result<RunRecord>(Unexpected(bytes.error()));
  if (!record) {
    log.warn("open: {}/{}: {}", tier.place(), name, record.error().message());
    return;
  }
  add_identity(survey, {record->store, record->seed, record->ranks, record->application});
}

void survey_manifest(store::Tier& tier, VersionKey key, Rank rank, OwnSurvey& own, Log& log) {
  SurveyedManifest entry{key, {}, false};
  auto manifest = load_manifest(tier, key, rank, {});
  if (manifest) {
    const Origin& origin = manifest->origin;
    add_identity(own.survey, {origin.store, origin.seed, origin.ranks, manifest->application});
    entry.parent = manifest->parent;
    if (auto whole = check_segments(tier, *manifest); whole) {
      entry.readable = true;
      manifest->fingerprints = {};  // restore() reads them again; until then they only take memory
      manifest->holders = {};
      own.readable.push_back(*std::move(manifest));
    } else {
      log.warn("open: version {}: {}", key.version, whole.error().message());
    }
  } else {
    log.warn("open: version {}: {}", key.version, manifest.error().message());
  }
  own.survey.manifests.push_back(entry);
}

}  // namespace

Result<Manifest> load_manifest(store::Tier& tier, VersionKey key, Rank rank,
                               const std::optional<StoreId>& store) {
  const std::string name = format::manifest_name(key, rank);
  BELAY_ASSIGN(const auto bytes, store::read_whole(tier, name, format::check_manifest_front));
  const std::string where = tier.place() + "/" + name;
  BELAY_ASSIGN(auto manifest, within(where, format::decode_manifest(bytes)));
  if (manifest.origin.key != key || manifest.origin.rank != rank)
    return fail(Code::corruption, "{}: its content is another file's (run {}, version {}, rank {})",
                where, manifest.origin.key.run, manifest.origin.key.version, manifest.origin.rank);
  if (store && manifest.origin.store != *store)
    return fail(Code::corruption, "{}: belongs to another store", where);
  return manifest;
}

Result<void> check_segments(store::Tier& tier, const Manifest& manifest) {
  for (const SegmentRef& segment : manifest.segments) {
    const std::string name = format::segment_name(segment.id);
    BELAY_ASSIGN(const std::uint64_t bytes, tier.touch(name));
    if (bytes != segment.file_bytes)
      return fail(Code::corruption, "{}/{}: has {} bytes instead of {}", tier.place(), name, bytes,
                  segment.file_bytes);
  }
  return {};
}

Result<OwnSurvey> survey(store::Tier& tier, Rank rank, Log& log) {
  OwnSurvey own;
  // A rank may have been killed between a rename and the sync of its directory: what this survey
  // sees, and the ranks agree on, must be there after a power cut as well.
  BELAY_TRY(tier.sync_names());
  BELAY_ASSIGN(const auto names, tier.list());
  bool any = false;
  for (const std::string& name : names) {
    if (name == format::kSettledName) {
      any = own.survey.settled = true;
      survey_record(tier, name, own.survey, log);
      continue;
    }
    const auto parsed = format::parse_name(name);
    if (!parsed) continue;
    if (parsed->key.run > kHighestNumber || parsed->key.version > kHighestNumber)
      return fail(Code::corruption, "{}/{}: no run or version has such a number; remove the file",
                  tier.place(), name);
    own.survey.highest_run = std::max(own.survey.highest_run, parsed->key.run);
    if (parsed->key.version > own.survey.highest_number.version)
      own.survey.highest_number = parsed->key;
    if (parsed->temporary) {
      const bool of_the_node =
          parsed->kind == format::NameKind::run || parsed->kind == format::NameKind::closed;
      if (of_the_node || parsed->rank == rank) own.temporaries.push_back(name);
      continue;
    }
    any = true;
    if (parsed->kind == format::NameKind::run) {
      own.run_records.push_back(parsed->key.run);
      own.survey.highest_record = std::max(own.survey.highest_record, parsed->key.run);
      survey_record(tier, name, own.survey, log);
    } else if (parsed->kind == format::NameKind::closed) {
      own.closed_marks.push_back(name);
      own.survey.closed_run = std::max(own.survey.closed_run, parsed->key.run);
    } else if (parsed->rank == rank && parsed->kind == format::NameKind::segment) {
      own.segments.push_back({parsed->key, rank});
    } else if (parsed->rank == rank) {
      survey_manifest(tier, parsed->key, rank, own, log);
    }
  }
  own.survey.unreadable = any && own.survey.identities.empty();
  std::sort(own.survey.manifests.begin(), own.survey.manifests.end(),
            [](const auto& a, const auto& b) { return a.key > b.key; });
  return own;
}

std::vector<std::byte> encode_survey(const Survey& survey) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(static_cast<std::uint32_t>(survey.identities.size()));
  for (const Identity& identity : survey.identities) {
    writer.pair(identity.store.low, identity.store.high);
    writer.field(identity.seed);
    writer.field(identity.ranks);
    writer.length(identity.application);
    writer.text(identity.application);
  }
  writer.field(survey.highest_run);
  writer.field(survey.highest_record);
  writer.pair(survey.highest_number.run, survey.highest_number.version);
  writer.field(static_cast<std::uint8_t>(survey.settled));
  writer.field(survey.closed_run);
  writer.field(static_cast<std::uint8_t>(survey.unreadable));
  writer.field(static_cast<std::uint32_t>(survey.manifests.size()));
  for (const SurveyedManifest& manifest : survey.manifests) {
    writer.pair(manifest.key.run, manifest.key.version);
    writer.pair(manifest.parent.run, manifest.parent.version);
    writer.field(static_cast<std::uint8_t>(manifest.readable));
  }
  return bytes;
}

Survey decode_survey(std::span<const std::byte> bytes) {
  Survey survey;
  format::WireReader reader(bytes);
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left) {
    Identity identity;
    identity.store.low = reader.field<std::uint64_t>();
    identity.store.high = reader.field<std::uint64_t>();
    identity.seed = reader.field<std::uint64_t>();
    identity.ranks = reader.field<Rank>();
    identity.application = reader.text(reader.field<std::uint8_t>());
    survey.identities.push_back(identity);
  }
  survey.highest_run = reader.field<Run>();
  survey.highest_record = reader.field<Run>();
  survey.highest_number.run = reader.field<Run>();
  survey.highest_number.version = reader.field<Version>();
  survey.settled = reader.field<std::uint8_t>() != 0;
  survey.closed_run = reader.field<Run>();
  survey.unreadable = reader.field<std::uint8_t>() != 0;
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left) {
    SurveyedManifest manifest;
    manifest.key.run = reader.field<Run>();
    manifest.key.version = reader.field<Version>();
    manifest.parent.run = reader.field<Run>();
    manifest.parent.version = reader.field<Version>();
    manifest.readable = reader.field<std::uint8_t>() != 0;
    survey.manifests.push_back(manifest);
  }
  return survey;
}

}  // namespace belay::vote
