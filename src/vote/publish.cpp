// SPDX-License-Identifier: Apache-2.0
#include "vote/publish.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "store/file_writer.hpp"
#include "vote/claim.hpp"

#include <set>

namespace belay::vote {
namespace {

bool names_own_segment(const Manifest& manifest) {
  const SegmentId own{manifest.origin.key, manifest.origin.rank};
  for (const SegmentRef& segment : manifest.segments)
    if (segment.id == own) return true;
  return false;
}

/// A file that is gone already is as good as removed.
bool remove_file(store::Tier& tier, const std::string& name, Log& log, bool reuse = false) {
  auto removed = reuse ? tier.retire(name) : tier.remove(name);
  if (removed || removed.error().code() == Code::not_found) return true;
  log.warn("retire: {}", removed.error().message());
  return false;
}

/// Of versions without bundles the mark that these do not count says nothing any more.
void remove_idle_marks(store::Tier& tier, Log& log) {
  for (store::Tier* const place : tier.places()) {
    const auto names = place->list();
    if (!names) continue;
    std::set<VersionKey> bundled;
    std::vector<VersionKey> marked;
    for (const std::string& name : *names) {
      const auto parsed = format::parse_name(name);
      if (parsed && parsed->kind == format::NameKind::bundle) bundled.insert(parsed->key);
      if (parsed && parsed->kind == format::NameKind::retired) marked.push_back(parsed->key);
    }
    // A bundle that is removed must not come back after its mark.
    if (marked.empty() || !place->sync_names()) continue;
    for (const VersionKey& key : marked)
      if (!bundled.contains(key)) remove_file(*place, format::retired_name(key), log);
  }
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void Retired::add(const Retired& more) {
  append(manifests, more.manifests);
  append(segments, more.segments);
  append(copies, more.copies);
  append(shards, more.shards);
  append(bundles, more.bundles);
  append(others, more.others);
}

Result<std::uint64_t> publish(store::Tier& tier, const Manifest& manifest,
                              store::FileWriter* segment, std::span<std::byte> buffer,
                              bool& visible) {
  const std::string name = format::manifest_name(manifest.origin.key, manifest.origin.rank);
  const std::string temporary = format::temporary_name(name);
  BELAY_ASSIGN(auto writer, store::FileWriter::create(tier, temporary));
  writer.lend(buffer);
  BELAY_TRY(format::encode_manifest(manifest, writer));
  const std::uint64_t bytes = writer.offset();
  BELAY_TRY(writer.complete());
  // Both files' blocks and names are in one journal transaction by now: the first sync writes it.
  if (segment != nullptr) BELAY_TRY(segment->finish(planted(Mistake::skip_data_sync)));
  BELAY_TRY(writer.finish());
  // The segment's name must be durable before the manifest can be seen; older ones are already.
  if (names_own_segment(manifest)) BELAY_TRY(tier.sync_names());
  BELAY_TRY(check_still_ours(tier, manifest.origin.key.run));
  visible = true;
  BELAY_TRY(tier.publish(temporary, name, /*exclusive=*/false));
  return bytes;
}

Retired remove_retired(store::Tier& tier, const Retired& retired, Log& log, bool reuse) {
  Retired left;
  for (const SegmentId& id : retired.manifests)
    if (!remove_file(tier, format::manifest_name(id.key, id.rank), log))
      left.manifests.push_back(id);
  // Whoever hears that none are left may count on it that none come back.
  const auto synced = retired.manifests.empty() ? Result<void>{} : tier.sync_names();
  if (!synced) log.warn("retire: {}", synced.error().message());
  if (!synced) left.manifests = retired.manifests;
  const bool manifests_are_gone = left.manifests.empty();
  for (const SegmentId& id : retired.segments)
    if (!manifests_are_gone || !remove_file(tier, format::segment_name(id), log, reuse))
      left.segments.push_back(id);
  for (const SegmentId& id : retired.copies)
    if (!manifests_are_gone || !remove_file(tier, format::copy_name(id), log, reuse))
      left.copies.push_back(id);
  for (const SegmentId& id : retired.shards)
    if (!manifests_are_gone || !remove_file(tier, format::shard_name(id), log, reuse))
      left.shards.push_back(id);
  for (const SegmentId& id : retired.bundles)
    if (!manifests_are_gone || !remove_file(tier, format::bundle_name(id), log))
      left.bundles.push_back(id);
  if (!retired.bundles.empty()) remove_idle_marks(tier, log);
  for (const std::string& name : retired.others)
    if (!remove_file(tier, name, log)) left.others.push_back(name);
  return left;
}

void drop_retired(store::Tier& tier, Log& log) {
  const auto dropped = within_memory([&] { return tier.drop_retired(); });
  if (!dropped) log.warn("retire: {}", dropped.error().message());
}

Result<void> prepare_settled(store::Tier& tier, const RunRecord& record) {
  return store::prepare_whole(tier, std::string(format::kSettledName),
                              format::encode_run_record(record));
}

Result<void> mark_settled(store::Tier& tier, const RunRecord& record) {
  const std::string name(format::kSettledName);
  auto marked = tier.publish(format::temporary_name(name), name, /*exclusive=*/false);
  if (marked || marked.error().code() != Code::not_found) return marked;
  return store::put_whole(tier, name, format::encode_run_record(record), /*exclusive=*/false);
}

Result<void> mark_closed(store::Tier& tier, const RunRecord& record, Version last) {
  return store::put_whole(tier, format::closed_name({record.run, last}),
                          format::encode_run_record(record), /*exclusive=*/false);
}

}  // namespace belay::vote
