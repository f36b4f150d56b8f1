// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "session/core.hpp"
#include "session/restorer.hpp"
#include "vote/agreement.hpp"
#include "vote/survey.hpp"

#include <algorithm>

namespace belay::detail {
namespace {

template <class T>
Result<void> status_of(const Result<T>& result) {
  return result ? Result<void>{} : Result<void>(Unexpected(result.error()));
}

}  // namespace

Result<Version> SessionCore::restore(const RestoreOptions& options) {
  BELAY_TRY(check_usable(false));
  BELAY_TRY(settle(Call::restore, options.version.value_or(0)));
  std::vector<VersionKey> candidates = holdings_.candidates();
  if (options.version)
    std::erase_if(candidates, [&](const auto& key) { return key.version != *options.version; });
  std::string reasons;
  for (const VersionKey& key : candidates) {
    std::optional<Error> reason;
    BELAY_ASSIGN(const bool restored, try_version(key, options, reason));
    if (restored) return key.version;
    holdings_.does_not_exist(key);
    log_.warn("restore: version {} cannot be restored: {}", key.version, reason->message());
    reasons += fmt::format("{}version {}: {}", reasons.empty() ? "" : "; ", key.version,
                           reason->message());
  }
  if (options.version && candidates.empty())
    return fail(Code::not_found,
                "restore: there is no version {} in {}; versions() lists those "
                "that are",
                *options.version, settings_.store);
  if (!latest())
    return fail(Code::not_found,
                "restore: no version was ever taken in {}; check `store`, or start "
                "without restore()",
                settings_.store);
  return fail(Code::corruption,
              "restore: no version in {} can be restored{}{}; bring back what is missing, or move "
              "the store away to start anew",
              settings_.store, reasons.empty() ? "" : ": ", reasons);
}

Result<bool> SessionCore::try_version(VersionKey key, const RestoreOptions& options,
                                      std::optional<Error>& reason) {
  auto manifest = load(key);
  BELAY_ASSIGN(const bool all_loaded, all_succeed(status_of(manifest), reason));
  if (!all_loaded) return false;
  // The version is there. Where the regions do not fit it, the program is wrong, and an older
  // version would only hide that.
  const std::string what = fmt::format("version {}", key.version);
  auto matches = session::match_regions(*manifest, regions_, options, what, log_);
  BELAY_ASSIGN(const bool all_fit, all_succeed(status_of(matches), reason));
  if (!all_fit) return Unexpected(*reason);
  BELAY_ASSIGN(const bool all_filled, all_succeed(fill(*manifest, *matches), reason));
  if (!all_filled) {
    // A lack of memory is not the version's fault.
    if (reason->code() == Code::no_space) return Unexpected(*reason);
    return false;
  }
  BELAY_ASSIGN(const bool all_took, all_succeed(session::hand_over(*matches), reason));
  if (!all_took) return Unexpected(*reason);
  adopt_restored(*std::move(manifest));
  return true;
}

Result<Manifest> SessionCore::load(VersionKey key) {
  const vote::Identity& identity = parts_.claim.identity;
  BELAY_ASSIGN(auto manifest, vote::load_manifest(equipment_.tier, key, rank_, identity.store));
  if (manifest.origin.ranks != parts_.group->size() || manifest.origin.seed != identity.seed)
    return fail(Code::corruption, "its manifest is of another store");
  return manifest;
}

Result<void> SessionCore::fill(const Manifest& manifest,
                               const std::vector<session::RegionMatch>& matches) {
  std::unique_ptr<fingerprint::Hasher> other;
  if (manifest.hash != settings_.hash) {
    other = fingerprint::make_hasher(manifest.hash, manifest.origin.seed);
    if (!other)
      return fail(Code::unsupported, "this system lacks the hash {} that it was saved with",
                  fingerprint::name_of(manifest.hash));
  }
  session::Equipment equipment{equipment_.settings,
                               equipment_.clock,
                               equipment_.log,
                               equipment_.tier,
                               other ? *other : equipment_.hasher,
                               equipment_.parallel,
                               equipment_.staging,
                               equipment_.worker};
  os::Parallel readers(parts_.read_threads);
  return session::read_regions(equipment, readers, manifest, matches);
}

Result<bool> SessionCore::all_succeed(const Result<void>& mine, std::optional<Error>& reason) {
  if (planted(Mistake::agree_on_maximum)) {
    if (!mine) reason = mine.error();
    return mine.has_value();
  }
  auto agreed = vote::agree(*parts_.group, mine);
  if (agreed) return true;
  if (agreed.error().code() == Code::peer_lost) return Unexpected(agreed.error());
  reason = agreed.error();
  return false;
}

void SessionCore::adopt_restored(Manifest manifest) {
  auto shared = std::make_shared<Manifest>(std::move(manifest));
  dedup_.index(*shared);
  catalog_.adopt(shared, dedup_.live_bytes());
  index_is_current_ = settings_.dedup == Dedup::local;
  if (!index_is_current_) dedup_ = {};
  stats_.table_bytes = catalog_.memory_bytes() + dedup_.memory_bytes();
  dirty_sets_.distrust_all();
  holdings_.restored(*shared);
  log_.info("restored version {}", shared->origin.key.version);
}

}  // namespace belay::detail
