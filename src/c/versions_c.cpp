// SPDX-License-Identifier: Apache-2.0
#include "c/handle.hpp"

#include <cstring>

using belay::Code;
using belay::fail;
using belay::Result;

namespace {

belay_ledger ledger_of(const belay::Ledger& ledger) {
  return {.size = sizeof(belay_ledger),
          .version = ledger.version,
          .protected_bytes = ledger.protected_bytes,
          .untouched_bytes = ledger.untouched_bytes,
          .unchanged_bytes = ledger.unchanged_bytes,
          .duplicate_here_bytes = ledger.duplicate_here_bytes,
          .duplicate_elsewhere_bytes = ledger.duplicate_elsewhere_bytes,
          .written_bytes = ledger.written_bytes,
          .carried_bytes = ledger.carried_bytes,
          .encoded_bytes = ledger.encoded_bytes,
          .file_bytes = ledger.file_bytes,
          .settle_ns = ledger.settle_ns,
          .detect_ns = ledger.detect_ns,
          .stage_ns = ledger.stage_ns,
          .wait_ns = ledger.wait_ns,
          .blocking_ns = ledger.blocking_ns,
          .durable_ns = ledger.durable_ns};
}

/// Fills *place as far as its size says that it goes: programs may know fewer members, or more.
template <class Structure>
Result<void> put(const char* call, const Structure& filled, Structure* place) {
  const size_t size = place->size;
  if (size <= sizeof(size_t))
    return fail(Code::invalid_argument,
                "{}: the structure's size is not set; set it to its sizeof first", call);
  std::memcpy(static_cast<void*>(place), &filled, std::min(size, sizeof filled));
  place->size = size;
  return {};
}

/// `work()` gives a Result<Structure>, which goes to *place.
template <class Structure, class Work>
int put_result(belay_session* session, const char* call, Structure* place, Work&& work) {
  if (session == nullptr) return belay::c::refuse(session, call, belay::c::kNoSession);
  if (place == nullptr)
    return belay::c::refuse(session, call, "there is no place to put the answer into");
  return belay::c::run(session, [&]() -> Result<void> {
    BELAY_ASSIGN(const Structure filled, work());
    return put(call, filled, place);
  });
}

Result<const belay::VersionInfo*> version_at(const belay_session& session, size_t place) {
  if (place < session.versions.size()) return &session.versions[place];
  return fail(Code::not_found, "there is no version at place {}: belay_versions() found {}", place,
              session.versions.size());
}

}  // namespace

int belay_get_stats(belay_session* session, belay_stats* stats) {
  return put_result(session, "belay_get_stats", stats, [&]() -> Result<belay_stats> {
    belay::Stats found = session->session.stats();
    session->last_failure = std::move(found.last_failure);
    session->codecs = std::move(found.codecs);
    return belay_stats{.size = sizeof(belay_stats),
                       .captured = found.captured,
                       .existing = found.existing,
                       .failed = found.failed,
                       .skipped = found.skipped,
                       .table_bytes = found.table_bytes,
                       .staging_bytes = found.staging_bytes,
                       .hash_threads = found.hash_threads,
                       .last_failure = session->last_failure.c_str(),
                       .sent_bytes = found.sent_bytes,
                       .kept_bytes = found.kept_bytes,
                       .codec_count = session->codecs.size()};
  });
}

int belay_codec_at(belay_session* session, size_t place, belay_codec_use* use) {
  return put_result(session, "belay_codec_at", use, [&]() -> Result<belay_codec_use> {
    if (place >= session->codecs.size())
      return fail(Code::not_found, "there is no codec at place {}: belay_get_stats() found {}",
                  place, session->codecs.size());
    const belay::CodecUse& found = session->codecs[place];
    return belay_codec_use{.size = sizeof(belay_codec_use),
                           .tier = found.tier.c_str(),
                           .variable = found.variable.c_str(),
                           .codec = found.codec.c_str(),
                           .raw_bytes = found.raw_bytes,
                           .encoded_bytes = found.encoded_bytes,
                           .encode_ns = found.encode_ns};
  });
}

int belay_last_ledger(belay_session* session, belay_ledger* ledger) {
  return put_result(session, "belay_last_ledger", ledger, [&]() -> Result<belay_ledger> {
    return ledger_of(session->session.stats().last);
  });
}

int belay_total_ledger(belay_session* session, belay_ledger* ledger) {
  return put_result(session, "belay_total_ledger", ledger, [&]() -> Result<belay_ledger> {
    return ledger_of(session->session.stats().total);
  });
}

int belay_versions(belay_session* session, size_t* count) {
  if (count != nullptr) *count = 0;
  if (session == nullptr) return belay::c::refuse(session, "belay_versions", belay::c::kNoSession);
  return belay::c::run(session, [&]() -> Result<void> {
    session->versions = session->session.versions();
    if (count != nullptr) *count = session->versions.size();
    return {};
  });
}

int belay_version_at(belay_session* session, size_t place, belay_version_info* info) {
  return put_result(session, "belay_version_at", info, [&]() -> Result<belay_version_info> {
    BELAY_ASSIGN(const auto* version, version_at(*session, place));
    return belay_version_info{.size = sizeof(belay_version_info),
                              .version = version->version,
                              .run = version->run,
                              .parent = version->parent,
                              .time_ns = version->time_ns,
                              .region_count = version->regions.size(),
                              .level = version->level.c_str()};
  });
}

int belay_region_at(belay_session* session, size_t place, size_t region, belay_region_info* info) {
  return put_result(session, "belay_region_at", info, [&]() -> Result<belay_region_info> {
    BELAY_ASSIGN(const auto* version, version_at(*session, place));
    if (region >= version->regions.size())
      return fail(Code::not_found, "there is no region at place {}: version {} has {}", region,
                  version->version, version->regions.size());
    const belay::RegionInfo& found = version->regions[region];
    return belay_region_info{.size = sizeof(belay_region_info),
                             .name = found.name.c_str(),
                             .type = static_cast<belay_type>(found.type.kind),
                             .type_bytes = found.type.bytes,
                             .type_name = found.type.name.c_str(),
                             .dimensions = found.shape.dimensions(),
                             .extents = found.shape.extents().data(),
                             .bytes = found.bytes};
  });
}

int belay_ledger_at(belay_session* session, size_t place, belay_ledger* ledger) {
  return put_result(session, "belay_ledger_at", ledger, [&]() -> Result<belay_ledger> {
    BELAY_ASSIGN(const auto* version, version_at(*session, place));
    return ledger_of(version->ledger);
  });
}
