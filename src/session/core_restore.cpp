// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "session/core.hpp"
#include "session/restorer.hpp"
#include "vote/agreement.hpp"
#include "vote/survey.hpp"

#include <algorithm>

namespace belay::detail {

Result<Version> SessionCore::restore(const RestoreOptions& options) {
  BELAY_TRY(check_usable(false));
  BELAY_TRY(settle(Call::restore));
  std::vector<VersionKey> candidates = holdings_.candidates();
  if (options.version)
    std::erase_if(candidates, [&](const auto& key) { return key.version != *options.version; });
  std::string reasons;
  for (const VersionKey& key : candidates) {
    Attempt result;
    const auto mine = attempt(key, options, result);
    std::string reason;
    BELAY_ASSIGN(const bool restored, agree_on_attempt(mine, result.hopeless, reason));
    if (restored) {
      adopt_restored(std::move(result.manifest));
      return key.version;
    }
    holdings_.does_not_exist(key);
    log_.warn("restore: version {} cannot be restored: {}", key.version, reason);
    reasons += fmt::format("{}version {}: {}", reasons.empty() ? "" : "; ", key.version, reason);
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

/// This rank's try. Whatever fails is only reported: the ranks agree afterwards, in one place.
Result<void> SessionCore::attempt(VersionKey key, const RestoreOptions& options, Attempt& result) {
  BELAY_ASSIGN(result.manifest,
               vote::load_manifest(equipment_.tier, key, rank_, parts_.claim.identity.store));
  const Origin& origin = result.manifest.origin;
  if (origin.ranks != parts_.group->size() || origin.seed != parts_.claim.identity.seed)
    return fail(Code::corruption, "its manifest is of another store");
  const std::string what = fmt::format("version {}", key.version);
  auto matches = session::match_regions(result.manifest, regions_, options, what, log_);
  if (!matches) {
    result.hopeless = true;
    return Unexpected(matches.error());
  }
  std::unique_ptr<fingerprint::Hasher> other;
  if (result.manifest.hash != settings_.hash) {
    other = fingerprint::make_hasher(result.manifest.hash, origin.seed);
    if (!other) return fail(Code::unsupported, "this build lacks the hash that {} uses", what);
  }
  session::Equipment equipment{equipment_.settings,
                               equipment_.clock,
                               equipment_.log,
                               equipment_.tier,
                               other ? *other : equipment_.hasher,
                               equipment_.parallel,
                               equipment_.staging,
                               equipment_.worker};
  return session::read_regions(equipment, result.manifest, *matches);
}

/// True: all ranks succeeded. False: try the next version. An error ends the restore on all ranks.
Result<bool> SessionCore::agree_on_attempt(const Result<void>& mine, bool hopeless,
                                           std::string& reason) {
  if (planted(Mistake::agree_on_maximum)) return mine.has_value();
  std::uint64_t fits = hopeless ? 0 : 1;
  BELAY_TRY(parts_.group->reduce({&fits, 1}, ranks::Reduction::min));
  auto agreed = vote::agree(*parts_.group, mine);
  if (agreed) return true;
  if (fits == 0 || agreed.error().code() == Code::peer_lost) return Unexpected(agreed.error());
  reason = agreed.error().message();
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
  holdings_.restored();
  log_.info("restored version {}", shared->origin.key.version);
}

}  // namespace belay::detail
