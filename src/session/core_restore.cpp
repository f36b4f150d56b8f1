// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "session/core.hpp"
#include "session/global_read.hpp"
#include "session/restorer.hpp"
#include "session/shared_extents.hpp"
#include "session/stripe_fetch.hpp"
#include "vote/agreement.hpp"
#include "vote/survey.hpp"

#include <algorithm>
#include <array>

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
    if (restored) {
      BELAY_TRY(heal(options));
      return key.version;
    }
    holdings_.does_not_exist(key);
    log_.warn("restore: version {} cannot be restored: {}", key.version, reason->message());
    reasons += fmt::format("{}version {}: {}", reasons.empty() ? "" : "; ", key.version,
                           reason->message());
  }
  if (options.version && holdings_.find_dump(*options.version))
    return fail(Code::invalid_argument,
                "restore: version {} was taken by dump(), so that load() brings it back",
                *options.version);
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
  auto manifest =
      within_identity(vote::fetch_manifest(*parts_.group, parts_.claim.home(), parts_.claim.sources,
                                           key, parts_.claim.identity.store, log_));
  if (!manifest && manifest.error().code() == Code::peer_lost) return Unexpected(manifest.error());
  BELAY_ASSIGN(const bool all_loaded, all_succeed(status_of(manifest), reason));
  if (!all_loaded) return false;
  // The version is there. Where the regions do not fit it, the program is wrong, and an older
  // version would only hide that.
  const std::string what = fmt::format("version {}", key.version);
  auto matches = session::match_regions(*manifest, regions_, options, what, log_);
  BELAY_ASSIGN(const bool all_fit, all_succeed(status_of(matches), reason));
  if (!all_fit) {
    // Unless it is one of which open() has found only a part: latest() and versions() leave it out.
    if (!options.version && holdings_.newest() != key) return false;
    return Unexpected(*reason);
  }
  auto filled = fill(*manifest, *matches);
  if (!filled && filled.error().code() == Code::peer_lost) return Unexpected(filled.error());
  BELAY_ASSIGN(const bool all_filled, all_succeed(filled, reason));
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

Result<Manifest> SessionCore::within_identity(Result<Manifest> manifest) const {
  if (!manifest) return manifest;
  if (manifest->origin.ranks != parts_.group->size() ||
      manifest->origin.seed != parts_.claim.identity.seed)
    return fail(Code::corruption, "its manifest is of another store");
  return manifest;
}

Result<Manifest> SessionCore::load(VersionKey key) {
  const vote::Claim& claim = parts_.claim;
  auto loaded = vote::load_manifest(equipment_.tier, key, rank_, claim.identity.store);
  // Who shares a file with others may have it elsewhere.
  for (const std::string& directory : claim.sources.directories(key, rank_)) {
    if (loaded || !parts_.bundles) break;
    auto& place = store::place_in(*claim.sight, directory);
    loaded = vote::load_manifest(place, key, rank_, claim.identity.store);
  }
  return within_identity(std::move(loaded));
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
  auto lost = session::read_regions(equipment, readers, manifest, matches);
  std::vector<session::LostFile> damaged;
  if (lost) damaged = damaged_here(lost->blocks);
  std::vector<session::LostBlock> left;
  if (lost) left = lost->blocks;
  GlobalRead global = std::vector<session::LostFile>{};
  if (settings_.diskless()) BELAY_TRY(read_global(equipment, readers, manifest, left, global));
  if (parts_.group->size() > 1) {
    // A rank that cannot read at all still answers the others.
    BELAY_ASSIGN(auto fetched,
                 session::fetch_blocks(equipment, readers, *parts_.group, parts_.claim.whereabouts,
                                       manifest, std::exchange(left, {})));
    BELAY_ASSIGN(auto rebuilt,
                 session::rebuild_blocks(equipment, *parts_.group, parts_.claim.whereabouts,
                                         manifest, std::move(fetched.left)));
    left = std::move(rebuilt.left);
    damaged.insert(damaged.end(), fetched.damaged.begin(), fetched.damaged.end());
    damaged.insert(damaged.end(), rebuilt.damaged.begin(), rebuilt.damaged.end());
  }
  // Last: what is damaged on nodes must have been read to be known.
  if (parts_.claim.global) BELAY_TRY(read_global(equipment, readers, manifest, left, global));
  if (global) damaged.insert(damaged.end(), global->begin(), global->end());
  if (together()) BELAY_TRY(tell_damaged(damaged));
  if (!lost) return Unexpected(lost.error());
  if (!global) return Unexpected(global.error());
  if (left.empty()) return {};
  const session::LostBlock& block = left.front();
  if (lost->reason) return Unexpected(*lost->reason);
  return fail(Code::corruption,
              "{} blocks are in no file that is left, the first of them in region '{}': those who "
              "stored it in version {} were lost",
              left.size(), block.wanted.region->name, block.id.key.version);
}

Result<void> SessionCore::read_global(session::Equipment& equipment, os::Parallel& readers,
                                      const Manifest& manifest,
                                      std::vector<session::LostBlock>& left, GlobalRead& read) {
  std::vector<std::shared_ptr<store::Bundle>> open_bundles;
  if (parts_.group->size() > 1) {
    BELAY_ASSIGN(open_bundles,
                 session::share_extents(equipment, readers, *parts_.group, *parts_.claim.sight,
                                        parts_.claim.whereabouts, manifest.origin.store, left));
  }
  if (!left.empty())
    read = session::read_global(equipment, readers, *parts_.claim.sight, parts_.claim.whereabouts,
                                manifest, left);
  return {};
}

Result<void> SessionCore::heal(const RestoreOptions& options) {
  if (!together()) return {};
  const Manifest& manifest = catalog_.manifest();
  const Level wanted = settings_.level_plan().nearest(manifest.level);
  BELAY_ASSIGN(const auto sets, sets_at(wanted));
  std::vector<catalog::Whereabouts::Place> places;
  for (const auto& directory : parts_.claim.sources.directories(manifest.origin.key, rank_))
    places.push_back(parts_.claim.whereabouts.place(directory));
  bool whole = sets.most_lost_of(places) < places.size();
  for (const SegmentRef& segment : manifest.segments) whole = whole && !is_unsafe(segment, sets);
  // A version of memory that was restored only in part would be worse than none.
  bool complete = options.regions.empty() && !options.allow_missing && !options.allow_resized;
  for (const RegionRecord& region : manifest.regions)
    complete = complete && regions_.find(region.name) != nullptr;
  std::array<std::uint64_t, 2> lowest{whole ? 1u : 0u, complete ? 1u : 0u};
  BELAY_TRY(parts_.group->reduce(lowest, ranks::Reduction::min));
  if (lowest[0] == 1) return {};
  if (lowest[1] == 0) {
    log_.warn(
        "restore: something of version {} was lost; since not all of it was restored, the "
        "next checkpoint puts it back",
        manifest.origin.key.version);
    return {};
  }
  log_.warn("restore: something of version {} was lost; a new version puts it back",
            manifest.origin.key.version);
  healing_ = wanted;
  auto healed = checkpoint();
  healing_.reset();
  // On nodes; the way to the global tier takes its time.
  if (auto settled = settle(Call::restore); !settled) healed = Unexpected(settled.error());
  if (!healed && healed.error().code() == Code::peer_lost) return Unexpected(healed.error());
  // What was restored is right, whether or not it is safe again: the next version tries anew.
  if (!healed) log_.warn("restore: not healed: {}", healed.error().message());
  return {};
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
  index_is_current_ = settings_.dedups();
  if (!index_is_current_) dedup_ = {};
  stats_.table_bytes = catalog_.memory_bytes() + dedup_.memory_bytes();
  dirty_sets_.distrust_all();
  holdings_.restored(*shared);
  global_rounds_ = kGlobalRounds;
  log_.info("restored version {}", shared->origin.key.version);
}

}  // namespace belay::detail
