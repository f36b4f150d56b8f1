// SPDX-License-Identifier: Apache-2.0
#include "vote/survey.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/segment.hpp"
#include "format/wire.hpp"
#include "os/memory.hpp"
#include "store/bundle.hpp"
#include "store/shard_file.hpp"

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

/// Whose a file is, and what is to be done with it.
struct Found {
  format::ParsedName name;
  bool own = false;
  bool kept = false;  ///< another rank's, which this one looks after
  bool here = false;  ///< in the directory that this rank writes to
};

void survey_manifest(const SurveyedPlace& place, const Found& found, OwnSurvey& own, Log& log) {
  const VersionKey key = found.name.key;
  const auto last_place = static_cast<std::uint32_t>(own.survey.places.size() - 1);
  SurveyedManifest entry{key, found.name.rank, {}, false, last_place};
  std::optional<Manifest> kept;
  auto manifest = load_manifest(*place.tier, key, found.name.rank, {});
  if (manifest) {
    const Origin& origin = manifest->origin;
    add_identity(own.survey, {origin.store, origin.seed, origin.ranks, manifest->application});
    entry.parent = manifest->parent;
    entry.level = manifest->level;
    entry.dump = manifest->dump;
    manifest->fingerprints = {};  // restore() reads them again; until then they only take memory
    manifest->holders = {};
    kept = *std::move(manifest);
  } else {
    log.warn("open: version {}: {}", key.version, manifest.error().message());
  }
  if (found.kept) own.kept_manifests.push_back({key, found.name.rank});
  own.survey.manifests.push_back(entry);
  own.found.push_back(std::move(kept));
}

/// The size of a copy whose end is there: nobody has written down how long it must be.
Result<std::uint64_t> size_of_copy(store::Tier& tier, const std::string& name) {
  BELAY_ASSIGN(const auto file, tier.open(name));
  BELAY_ASSIGN(const std::uint64_t bytes, file->size());
  if (bytes < format::kFileAlignment || bytes % format::kFileAlignment != 0)
    return fail(Code::corruption, "{}/{}: has {} bytes, so it was cut", tier.place(), name, bytes);
  BELAY_ASSIGN(auto page, os::AlignedMemory::allocate(format::kFileAlignment));
  const auto last = page.bytes().first(format::kFileAlignment);
  BELAY_ASSIGN(const std::size_t got, file->read(bytes - last.size(), last));
  if (got != last.size())
    return fail(Code::corruption, "{}/{}: its end cannot be read", tier.place(), name);
  BELAY_TRY(within(tier.place() + "/" + name,
                   format::decode_segment_footer(last.last(format::kSegmentFooterBytes), bytes)));
  return bytes;
}

/// A shard says which segments it stands in for.
void survey_shard(const SurveyedPlace& place, const SegmentId& id, OwnSurvey& own, Log& log) {
  own.kept_shards.push_back(id);
  const auto shard = store::ShardFile::open(*place.tier, id, {});
  if (!shard) return log.warn("open: {}", shard.error().message());
  const auto& description = shard->description();
  own.survey.places.back().files.push_back(
      {id, FileKind::shard, shard->file_bytes(), description.seat});
  auto& stripes = own.survey.stripes;
  if (std::find(stripes.begin(), stripes.end(), description.stripe) == stripes.end())
    stripes.push_back(description.stripe);
}

/// What it has is there under names of its own; this is about who removes it.
void survey_bundle(const SurveyedPlace& place, const SegmentId& id, OwnSurvey& own, Log& log) {
  own.survey.bundles = true;
  KeptBundle& kept = own.kept_bundles.emplace_back(KeptBundle{id, {}, false});
  const auto bundle = store::Bundle::open(*place.tier, id);
  if (!bundle) return log.warn("open: {}", bundle.error().message());
  for (const auto& segment : (*bundle)->rider().segments) kept.segments.push_back(segment.id);
  kept.readable = true;
}

void survey_blocks(const SurveyedPlace& place, const std::string& name, const Found& found,
                   OwnSurvey& own, Log& log) {
  const SegmentId id{found.name.key, found.name.rank};
  if (found.name.kind == format::NameKind::shard) return survey_shard(place, id, own, log);
  const bool copy = found.name.kind == format::NameKind::copy;
  // A segment in a directory that nobody writes to is removed by the rank that made it.
  if (!copy && (found.own || (found.kept && found.here))) own.segments.push_back(id);
  if (copy) own.kept_copies.push_back(id);
  const auto bytes = copy ? size_of_copy(*place.tier, name) : place.tier->touch(name);
  if (bytes)
    own.survey.places.back().files.push_back(
        {id, copy ? FileKind::copy : FileKind::segment, *bytes, 0});
  else
    log.warn("open: {}", bytes.error().message());
}

Result<void> survey_place(const SurveyedPlace& place, bool first, Rank rank, OwnSurvey& own,
                          bool& any, Log& log) {
  // A rank may have been killed between a rename and the sync of its directory: what this survey
  // sees, and the ranks agree on, must be there after a power cut as well.
  BELAY_TRY(place.tier->sync_names());
  BELAY_ASSIGN(const auto names, place.tier->list());
  Survey& survey = own.survey;
  survey.places.push_back({place.directory, {}, false});
  for (const std::string& name : names) {
    if (name == format::kSettledName) {
      any = survey.settled = true;
      survey_record(*place.tier, name, survey, log);
      continue;
    }
    const auto parsed = format::parse_name(name);
    if (!parsed) continue;
    if (parsed->key.run > kHighestNumber || parsed->key.version > kHighestNumber)
      return fail(Code::corruption, "{}/{}: no run or version has such a number; remove the file",
                  place.tier->place(), name);
    survey.highest_run = std::max(survey.highest_run, parsed->key.run);
    if (parsed->key.version > survey.highest_number.version) survey.highest_number = parsed->key;
    if (parsed->kind == format::NameKind::retired) continue;  // goes with its bundles
    const bool of_the_node =
        parsed->kind == format::NameKind::run || parsed->kind == format::NameKind::closed;
    // Of a shard or bundle the number is no rank: it belongs to whoever looks after it.
    const bool numbered =
        parsed->kind == format::NameKind::shard || parsed->kind == format::NameKind::bundle;
    const bool own_rank = !of_the_node && parsed->rank == rank && !numbered;
    const Found found{*parsed, own_rank,
                      !of_the_node && !own_rank && place.looks_after(parsed->rank), first};
    if (parsed->temporary) {
      if (of_the_node || found.own || found.kept) own.temporaries.push_back(name);
      continue;
    }
    any = true;
    if (parsed->kind == format::NameKind::run) {
      if (first) own.run_records.push_back(parsed->key.run);
      survey.highest_record = std::max(survey.highest_record, parsed->key.run);
      survey_record(*place.tier, name, survey, log);
    } else if (parsed->kind == format::NameKind::closed) {
      if (first || place.sharers != 0) own.closed_marks.push_back(name);
      survey.closed_run = std::max(survey.closed_run, parsed->key.run);
    } else if (found.own || found.kept) {
      if (parsed->kind == format::NameKind::manifest)
        survey_manifest(place, found, own, log);
      else if (parsed->kind == format::NameKind::bundle)
        survey_bundle(place, {parsed->key, parsed->rank}, own, log);
      else
        survey_blocks(place, name, found, own, log);
    }
  }
  return {};
}

/// Its blocks may be in a segment of another rank that has equal ones.
bool may_be_elsewhere(const Manifest& manifest, const SegmentRef& segment,
                      const catalog::Whereabouts& whereabouts) {
  return std::any_of(manifest.segments.begin(), manifest.segments.end(), [&](const auto& other) {
    return other.id.key == segment.id.key && whereabouts.found(other);
  });
}

/// Why the blocks of this manifest cannot be there; empty if they may be.
std::string missing_segment(const Manifest& manifest, const catalog::Whereabouts& whereabouts) {
  for (const SegmentRef& segment : manifest.segments) {
    if (may_be_elsewhere(manifest, segment, whereabouts)) continue;
    const std::string name = format::segment_name(segment.id);
    const auto& holders = whereabouts.holders(segment.id);
    if (holders.empty()) return name + " was not found";
    return fmt::format("{}/{}: has {} bytes instead of {}",
                       whereabouts.directory(holders.front().place), name, holders.front().bytes,
                       segment.file_bytes);
  }
  return {};
}

void put_level(format::WireWriter& writer, const Level& level) {
  writer.field(static_cast<std::uint8_t>(level.kind));
  writer.field(level.copies);
  writer.field(level.members);
  writer.field(level.shards);
}

Level get_level(format::WireReader& reader) {
  Level level;
  level.kind = static_cast<Level::Kind>(reader.field<std::uint8_t>());
  level.copies = reader.field<std::uint8_t>();
  level.members = reader.field<std::uint8_t>();
  level.shards = reader.field<std::uint8_t>();
  return level;
}

PlaceSurvey decode_place(format::WireReader& reader) {
  PlaceSurvey place;
  place.directory = reader.text(reader.field<std::uint32_t>());
  place.global = reader.field<std::uint8_t>() != 0;
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left) {
    catalog::HeldFile file;
    file.id.key.run = reader.field<Run>();
    file.id.key.version = reader.field<Version>();
    file.id.rank = reader.field<Rank>();
    file.kind = static_cast<FileKind>(reader.field<std::uint8_t>());
    file.bytes = reader.field<std::uint64_t>();
    file.seat = reader.field<std::uint32_t>();
    place.files.push_back(file);
  }
  return place;
}

void put_stripe(format::WireWriter& writer, const Stripe& stripe) {
  writer.pair(stripe.key.run, stripe.key.version);
  writer.field(stripe.number);
  writer.field(stripe.level.members);
  writer.field(stripe.level.shards);
  writer.field(stripe.seats());
  for (const StripeMember& member : stripe.members) {
    writer.field(member.rank);
    writer.field(member.file_bytes);
    writer.pair(member.gap_begin, member.gap_bytes);
  }
}

Stripe get_stripe(format::WireReader& reader) {
  Stripe stripe;
  stripe.key.run = reader.field<Run>();
  stripe.key.version = reader.field<Version>();
  stripe.number = reader.field<std::uint32_t>();
  const auto members = reader.field<std::uint8_t>();
  stripe.level = Level::erasure(members, reader.field<std::uint8_t>());
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left) {
    StripeMember& member = stripe.members.emplace_back();
    member.rank = reader.field<Rank>();
    member.file_bytes = reader.field<std::uint64_t>();
    member.gap_begin = reader.field<std::uint64_t>();
    member.gap_bytes = reader.field<std::uint64_t>();
  }
  return stripe;
}

Result<Manifest> load_from_place(store::Tier& tier, VersionKey key, Rank rank,
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

}  // namespace

Result<Manifest> load_manifest(store::Tier& tier, VersionKey key, Rank rank,
                               const std::optional<StoreId>& store) {
  std::optional<Result<Manifest>> loaded;
  for (store::Tier* const place : tier.places()) {
    auto found = load_from_place(*place, key, rank, store);
    const bool tells_more = !loaded || loaded->error().code() == Code::not_found;
    if (found || tells_more) loaded = std::move(found);
    if (*loaded) break;
  }
  return *std::move(loaded);
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

Result<OwnSurvey> survey(std::span<const SurveyedPlace> places, Rank rank, Log& log) {
  OwnSurvey own;
  bool any = false;
  for (const SurveyedPlace& place : places) {
    auto looked = survey_place(place, &place == &places.front(), rank, own, any, log);
    // An old directory that was removed meanwhile holds nothing any more.
    const bool gone = !looked && looked.error().code() == Code::not_found;
    if (!looked && !(gone && &place != &places.front())) return Unexpected(looked.error());
  }
  own.survey.unreadable = any && own.survey.identities.empty();
  return own;
}

void add_global_survey(OwnSurvey& own, OwnSurvey& global) {
  Survey& all = own.survey;
  Survey& more = global.survey;
  for (const Identity& identity : more.identities) add_identity(all, identity);
  // Not highest_record: that a node lacks the record of a run tells that the node was lost.
  all.highest_run = std::max(all.highest_run, more.highest_run);
  if (more.highest_number.version > all.highest_number.version)
    all.highest_number = more.highest_number;
  all.settled = all.settled || more.settled;
  all.unreadable = all.identities.empty() && (all.unreadable || more.unreadable);
  const auto first = static_cast<std::uint32_t>(all.places.size());
  for (PlaceSurvey& place : more.places) {
    place.global = true;
    all.places.push_back(std::move(place));
  }
  for (std::size_t i = 0; i < more.manifests.size(); ++i) {
    more.manifests[i].place += first;
    all.manifests.push_back(more.manifests[i]);
    own.found.push_back(std::move(global.found[i]));
  }
  more.places.clear();
  more.manifests.clear();
  global.found.clear();
}

void judge_manifests(OwnSurvey& own, const catalog::Whereabouts& whereabouts, Rank rank, Log& log) {
  for (std::size_t i = 0; i < own.found.size(); ++i) {
    if (!own.found[i]) continue;
    SurveyedManifest& entry = own.survey.manifests[i];
    const std::string missing = missing_segment(*own.found[i], whereabouts);
    entry.readable = missing.empty();
    if (!missing.empty()) log.warn("open: version {}: {}", entry.key.version, missing);
    const bool is_new = std::none_of(own.readable.begin(), own.readable.end(),
                                     [&](const auto& m) { return m.origin.key == entry.key; });
    if (entry.readable && entry.rank == rank && is_new)
      own.readable.push_back(*std::move(own.found[i]));
  }
  own.found.clear();
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
  writer.field(static_cast<std::uint8_t>(survey.bundles));
  writer.field(static_cast<std::uint32_t>(survey.manifests.size()));
  for (const SurveyedManifest& manifest : survey.manifests) {
    writer.pair(manifest.key.run, manifest.key.version);
    writer.field(manifest.rank);
    writer.pair(manifest.parent.run, manifest.parent.version);
    writer.field(manifest.place);
    writer.field(static_cast<std::uint8_t>(manifest.readable));
    put_level(writer, manifest.level);
    writer.field(static_cast<std::uint8_t>(manifest.dump));
  }
  writer.field(static_cast<std::uint32_t>(survey.places.size()));
  for (const PlaceSurvey& place : survey.places) {
    writer.field(static_cast<std::uint32_t>(place.directory.size()));
    writer.text(place.directory);
    writer.field(static_cast<std::uint8_t>(place.global));
    writer.field(static_cast<std::uint32_t>(place.files.size()));
    for (const catalog::HeldFile& file : place.files) {
      writer.pair(file.id.key.run, file.id.key.version);
      writer.field(file.id.rank);
      writer.field(static_cast<std::uint8_t>(file.kind));
      writer.field(file.bytes);
      writer.field(file.seat);
    }
  }
  writer.field(static_cast<std::uint32_t>(survey.stripes.size()));
  for (const Stripe& stripe : survey.stripes) put_stripe(writer, stripe);
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
  survey.bundles = reader.field<std::uint8_t>() != 0;
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left) {
    SurveyedManifest manifest;
    manifest.key.run = reader.field<Run>();
    manifest.key.version = reader.field<Version>();
    manifest.rank = reader.field<Rank>();
    manifest.parent.run = reader.field<Run>();
    manifest.parent.version = reader.field<Version>();
    manifest.place = reader.field<std::uint32_t>();
    manifest.readable = reader.field<std::uint8_t>() != 0;
    manifest.level = get_level(reader);
    manifest.dump = reader.field<std::uint8_t>() != 0;
    survey.manifests.push_back(manifest);
  }
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left)
    survey.places.push_back(decode_place(reader));
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left)
    survey.stripes.push_back(get_stripe(reader));
  return survey;
}

}  // namespace belay::vote
