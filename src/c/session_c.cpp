// SPDX-License-Identifier: Apache-2.0
#include "c/handle.hpp"

#include <algorithm>
#include <cstring>
#include <span>

using belay::Result;
using belay::Version;
using belay::c::kNoSession;
using belay::c::refuse;
using belay::c::refuse_and_keep;
using belay::c::run;

namespace {

/// `work` gives a Result<Version>, whose value goes to *place.
template <class Work>
int run_for_version(const belay_session* session, belay_version* place, Work&& work) noexcept {
  if (place != nullptr) *place = 0;
  return run(session, [&]() -> Result<void> {
    BELAY_ASSIGN(const Version version, work());
    if (place != nullptr) *place = version;
    return {};
  });
}

/// What was refused before the session knew of it, once.
Result<void> unreported(belay_session& session) {
  if (!session.unreported) return {};
  const belay::Error error = *session.unreported;
  session.unreported.reset();
  return belay::Unexpected(error);
}

/// Pairs of addresses and lengths as spans. A failure is kept.
template <class Byte, class Pointer>
Result<std::vector<std::span<Byte>>> spans_of(belay_session& session, const char* call,
                                              const Pointer* buffers, const size_t* bytes,
                                              size_t count) {
  const auto missing = [&] {
    const belay::Error error(belay::Code::invalid_argument,
                             std::string(call) + ": buffers or their sizes are a null pointer");
    return belay::Unexpected(belay::c::kept(session, error));
  };
  std::vector<std::span<Byte>> spans;
  if (count > 0 && (buffers == nullptr || bytes == nullptr)) return missing();
  for (size_t i = 0; i < count; ++i) {
    if (buffers[i] == nullptr && bytes[i] > 0) return missing();
    spans.emplace_back(static_cast<Byte*>(buffers[i]), bytes[i]);
  }
  return spans;
}

Result<belay::RestoreOptions> restore_options(const belay_restore_options* from) {
  belay::RestoreOptions options;
  if (from == nullptr) return options;
  const auto refused = [](const char* why) {
    return belay::fail(belay::Code::invalid_argument, "belay_restore: {}", why);
  };
  if (from->size <= sizeof(size_t))
    return refused("the options' size is not set; set it to sizeof(belay_restore_options)");
  belay_restore_options given{};  // a program may know fewer members: the rest is 0
  std::memcpy(&given, from, std::min(from->size, sizeof given));
  if (given.regions == nullptr && given.region_count > 0)
    return refused("regions is a null pointer, but region_count is not 0");
  if (given.regions != nullptr && given.region_count == 0)
    return refused("regions is given, but region_count is 0; for all regions leave both out");
  if (given.version != 0) options.version = given.version;
  for (size_t i = 0; i < given.region_count; ++i) {
    if (given.regions[i] == nullptr) return refused("the name of a region is a null pointer");
    options.regions.emplace_back(given.regions[i]);
  }
  options.allow_missing = given.allow_missing != 0;
  options.allow_resized = given.allow_resized != 0;
  return options;
}

}  // namespace

int belay_open(belay_session** session, const belay_options* options) {
  return belay::c::open_with(session, options,
                             [](belay::Options chosen) { return belay::open(std::move(chosen)); });
}

int belay_wait(belay_session* session, belay_version* newest) {
  if (session == nullptr) return refuse(session, "belay_wait", kNoSession);
  return run_for_version(session, newest, [&]() -> Result<Version> {
    BELAY_ASSIGN(const Version version, session->session.wait());
    BELAY_TRY(unreported(*session));
    return version;
  });
}

int belay_close(belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_close", kNoSession);
  return run(session, [&]() -> Result<void> {
    BELAY_TRY(session->session.close());
    return unreported(*session);
  });
}

void belay_free(belay_session* session) { delete session; }

belay_version belay_latest(const belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_latest", kNoSession), 0;
  Version latest = 0;
  run(session, [&]() -> Result<void> {
    latest = session->session.latest().value_or(0);
    return {};
  });
  return latest;
}

int belay_restore(belay_session* session, const belay_restore_options* options,
                  belay_version* restored) {
  if (session == nullptr) return refuse(session, "belay_restore", kNoSession);
  return run_for_version(session, restored, [&]() -> Result<Version> {
    BELAY_ASSIGN(auto chosen, restore_options(options));
    return session->session.restore(std::move(chosen));
  });
}

int belay_due(belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_due", kNoSession), 0;
  bool due = false;
  run(session, [&]() -> Result<void> {
    due = session->session.due();
    return {};
  });
  return due ? 1 : 0;
}

int belay_checkpoint(belay_session* session, belay_version* version) {
  if (session == nullptr) return refuse(session, "belay_checkpoint", kNoSession);
  return run_for_version(session, version, [&] { return session->session.checkpoint(); });
}

int belay_begin(belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_begin", kNoSession);
  return run(session, [&] { return session->session.begin(); });
}

int belay_add(belay_session* session, const char* name) {
  if (session == nullptr) return refuse(session, "belay_add", kNoSession);
  if (name == nullptr) return refuse_and_keep(session, "belay_add", belay::c::kNoName);
  return run(session, [&] { return session->session.add(name); });
}

int belay_commit(belay_session* session, belay_version* version) {
  if (session == nullptr) return refuse(session, "belay_commit", kNoSession);
  return run_for_version(session, version, [&] { return session->session.commit(); });
}

int belay_dump(belay_session* session, const void* const* buffers, const size_t* bytes,
               size_t count, int copies, belay_version* version) {
  if (session == nullptr) return refuse(session, "belay_dump", kNoSession);
  return run_for_version(session, version, [&]() -> Result<Version> {
    BELAY_ASSIGN(const auto spans,
                 spans_of<const std::byte>(*session, "belay_dump", buffers, bytes, count));
    return session->session.dump(spans, copies);
  });
}

int belay_load(belay_session* session, belay_version version, void* const* buffers,
               const size_t* bytes, size_t count) {
  if (session == nullptr) return refuse(session, "belay_load", kNoSession);
  return run(session, [&]() -> Result<void> {
    BELAY_ASSIGN(const auto spans,
                 spans_of<std::byte>(*session, "belay_load", buffers, bytes, count));
    return session->session.load(version, spans);
  });
}

int belay_is_head(const belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_is_head", kNoSession), 0;
  return session->session.is_head() ? 1 : 0;
}

int belay_serve(belay_session* session) {
  if (session == nullptr) return refuse(session, "belay_serve", kNoSession);
  return session->session.serve();
}
