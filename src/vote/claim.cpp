// SPDX-License-Identifier: Apache-2.0
#include "vote/claim.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "store/places.hpp"
#include "vote/agreement.hpp"
#include "vote/publish.hpp"

#include <algorithm>

namespace belay::vote {
namespace {

constexpr std::uint64_t kLockPollNs = 100'000'000;
constexpr std::string_view kNodePrefix = "node-";

/// Which ranks share a directory, and what this job calls itself in lock files.
struct Places {
  std::vector<std::string> nodes;        ///< by rank
  std::vector<std::string> directories;  ///< by rank
  Rank leader = 0;                       ///< lowest rank with this rank's directory
  Rank share = 0;                        ///< of those that share it this one is so-and-so many-th
  Rank sharers = 1;
  std::string token;
};

std::string directory_of(const ClaimRequest& request, std::string_view node) {
  return fmt::format("{}/{}{}", request.store, kNodePrefix, node);
}

Result<Places> find_places(Surroundings& around, const ClaimRequest& request) {
  Places places;
  // Ranks share a directory if node and store path are the same; a name cannot hold a line break.
  BELAY_ASSIGN(const auto texts, gather_texts(around.group, request.node + "\n" + request.store));
  const std::string& mine = texts[around.group.rank()];
  places.leader = static_cast<Rank>(std::find(texts.begin(), texts.end(), mine) - texts.begin());
  places.sharers = static_cast<Rank>(std::count(texts.begin(), texts.end(), mine));
  places.share =
      static_cast<Rank>(std::count(texts.begin(), texts.begin() + around.group.rank(), mine));
  for (const std::string& text : texts) {
    const std::size_t end = text.find('\n');
    places.nodes.push_back(text.substr(0, end));
    places.directories.push_back(
        fmt::format("{}/{}{}", text.substr(end + 1), kNodePrefix, places.nodes.back()));
  }
  std::uint64_t token = around.random.next();
  BELAY_TRY(
      around.group.broadcast(std::as_writable_bytes(std::span<std::uint64_t, 1>(&token, 1)), 0));
  places.token = fmt::format("job {:016x}", token);
  return places;
}

Result<std::vector<std::string>> abandoned_directories(Surroundings& around, const Places& places,
                                                       const ClaimRequest& request) {
  BELAY_ASSIGN(const auto entries, around.files.list(request.store));
  std::vector<std::string> found;
  for (const os::DirectoryEntry& entry : entries) {
    if (entry.kind != os::EntryKind::directory || !entry.name.starts_with(kNodePrefix)) continue;
    const std::string node = entry.name.substr(kNodePrefix.size());
    if (std::find(places.nodes.begin(), places.nodes.end(), node) == places.nodes.end())
      found.push_back(request.store + "/" + entry.name);
  }
  return found;
}

/// What this job writes into lock files, and until when it waits for others to let go of them.
struct LockRequest {
  std::string owner;
  std::string token;
  std::uint64_t deadline_ns = 0;
};

Result<std::unique_ptr<os::Lock>> take_lock(Surroundings& around, const std::string& directory,
                                            const LockRequest& request) {
  const std::string path = directory + "/" + std::string(format::kLockName);
  while (true) {
    auto lock = around.files.lock(path, request.owner);
    if (lock || lock.error().code() != Code::busy) return lock;
    // Leaders that see the same abandoned directory through a shared file system are one job.
    if (lock.error().message().find(request.token) != std::string::npos)
      return std::unique_ptr<os::Lock>();
    if (around.clock.now_ns() >= request.deadline_ns)
      return fail(Code::busy,
                  "store {} is in use: {} (wait for that program to end, or use another `store`)",
                  directory, lock.error().message());
    around.clock.sleep_ns(kLockPollNs);
  }
}

struct TakenLocks {
  std::vector<std::unique_ptr<os::Lock>> locks;
  std::vector<std::string> adopted;  ///< directories of which this rank holds the lock
};

Result<TakenLocks> take_locks(Surroundings& around, const Places& places,
                              const ClaimRequest& request) {
  TakenLocks taken;
  if (places.leader != around.group.rank()) return taken;
  const std::string own = directory_of(request, request.node);
  BELAY_TRY(around.files.make_directory(own));
  BELAY_ASSIGN(auto directories, abandoned_directories(around, places, request));
  directories.insert(directories.begin(), own);
  const LockRequest wanted{
      .owner = fmt::format("host {} pid {} {}", request.host, request.pid, places.token),
      .token = places.token,
      .deadline_ns = around.clock.now_ns() + request.patience_ns};
  for (const std::string& directory : directories) {
    BELAY_ASSIGN(auto lock, take_lock(around, directory, wanted));
    if (!lock) continue;
    taken.locks.push_back(std::move(lock));
    if (directory != own) taken.adopted.push_back(directory);
  }
  return taken;
}

/// This node's directory, then those that no rank claims.
Result<std::vector<std::string>> readable_directories(Surroundings& around, const Places& places,
                                                      const ClaimRequest& request) {
  BELAY_ASSIGN(auto directories, abandoned_directories(around, places, request));
  directories.insert(directories.begin(), directory_of(request, request.node));
  return directories;
}

Result<std::unique_ptr<store::Tier>> open_tier(Surroundings& around, const Places& places,
                                               const ClaimRequest& request) {
  BELAY_ASSIGN(const auto directories, readable_directories(around, places, request));
  return store::open_places(around.files, directories);
}

/// Every directory of the global tier can be read by every rank.
Result<std::unique_ptr<store::Tier>> open_sight(Surroundings& around, const ClaimRequest& request,
                                                const Claim& claim) {
  std::vector<std::string> directories;
  const auto add = [&](const std::string& directory) {
    if (std::find(directories.begin(), directories.end(), directory) == directories.end())
      directories.push_back(directory);
  };
  for (store::Tier* const place : claim.tier->places()) add(place->place());
  if (request.sees_all)
    for (const std::string& directory : claim.directories) add(directory);
  if (claim.global) {
    for (store::Tier* const place : claim.global->tier->places()) add(place->place());
    for (const std::string& directory : claim.global->directories) add(directory);
  }
  return store::open_places(around.files, directories);
}

/// Looks into this node's directory, sharing the work with its other ranks; into those that this
/// leader has adopted, whole; and for its own files into all that no rank claims.
Result<OwnSurvey> survey_places(Surroundings& around, const Places& places,
                                const ClaimRequest& request,
                                const std::vector<std::string>& adopted) {
  BELAY_ASSIGN(const auto directories, readable_directories(around, places, request));
  const std::string& own = directories.front();
  std::vector<std::unique_ptr<store::Tier>> tiers;
  std::vector<SurveyedPlace> surveyed;
  for (const std::string& directory : directories) {
    tiers.push_back(store::open_place(around.files, directory));
    SurveyedPlace place{tiers.back().get(), directory, 0, 0};
    if (directory == own) place.share = places.share, place.sharers = places.sharers;
    if (std::find(adopted.begin(), adopted.end(), directory) != adopted.end()) place.sharers = 1;
    surveyed.push_back(place);
  }
  const Rank rank = around.group.rank();
  BELAY_ASSIGN(auto found, survey(surveyed, rank, around.log));
  // The other ranks that write here decide themselves which of their segments may go.
  std::erase_if(found.segments, [&](const SegmentId& id) {
    return id.rank != rank && id.rank < places.directories.size() &&
           places.directories[id.rank] == own;
  });
  return found;
}

/// The one identity that all surveys speak of, if any do.
Result<std::optional<Identity>> common_identity(const std::vector<Survey>& surveys) {
  std::optional<Identity> common;
  bool unreadable = false;
  for (std::size_t rank = 0; rank < surveys.size(); ++rank) {
    unreadable = unreadable || surveys[rank].unreadable;
    for (const Identity& identity : surveys[rank].identities) {
      if (!common) common = identity;
      if (identity.store != common->store)
        return fail(Code::invalid_argument,
                    "the store is a mixture of stores {} and {} (seen by rank {}); put each rank's "
                    "own directory back, or use an empty `store`",
                    to_hex(common->store), to_hex(identity.store), rank);
    }
  }
  if (!common && unreadable)
    return fail(Code::corruption,
                "the store holds files of Belay, but none that says whose can be read; restore the "
                "directory from a copy, or move it away to start anew");
  return common;
}

Result<void> check_identity(const Identity& found, const Identity& wanted) {
  if (found.application != wanted.application)
    return fail(Code::invalid_argument,
                "the store belongs to application '{}', this is '{}'; use another `store`, or set "
                "`application` if it is the same program under another name",
                found.application, wanted.application);
  if (found.ranks != wanted.ranks)
    return fail(Code::invalid_argument,
                "the store was written by {} ranks, this job has {}; start it with {} ranks or use "
                "another `store`",
                found.ranks, wanted.ranks, found.ranks);
  return {};
}

Result<std::vector<Survey>> exchange_surveys(ranks::Group& group, const Survey& mine) {
  BELAY_ASSIGN(const auto all, group.gather(encode_survey(mine)));
  std::vector<Survey> surveys;
  surveys.reserve(all.size());
  for (const auto& bytes : all) surveys.push_back(decode_survey(bytes));
  return surveys;
}

/// A copy, or a segment that its rank has left behind on a node where another one now writes.
bool is_shared(const Claim& claim, const std::string& directory, const catalog::HeldFile& file) {
  if (file.kind != FileKind::segment || file.id.rank >= claim.directories.size()) return true;
  const auto& all = claim.directories;
  return all[file.id.rank] != directory &&
         std::find(all.begin(), all.end(), directory) != all.end();
}

/// From what every rank has seen: who holds what, and which manifests are worth something.
Result<void> find_holders(Surroundings& around, Claim& claim) {
  for (Rank rank = 0; rank < claim.surveys.size(); ++rank) {
    claim.has_bundles = claim.has_bundles || claim.surveys[rank].bundles;
    for (const PlaceSurvey& seen : claim.surveys[rank].places) {
      const auto place = claim.whereabouts.place(seen.directory);
      if (seen.global) claim.whereabouts.mark_global(place);
      for (const catalog::HeldFile& file : seen.files) {
        claim.whereabouts.add(file, place, rank);
        const bool shared = !seen.global && is_shared(claim, seen.directory, file);
        claim.shares_files = claim.shares_files || shared;
      }
    }
  }
  claim.shares_files = claim.shares_files || claim.has_bundles;
  for (const Survey& seen : claim.surveys)
    for (const Stripe& stripe : seen.stripes) claim.whereabouts.add(stripe);
  judge_manifests(claim.own, claim.whereabouts, around.group.rank(), around.log);
  std::vector<std::byte> flags;
  for (const SurveyedManifest& manifest : claim.own.survey.manifests)
    flags.push_back(std::byte{manifest.readable});
  BELAY_ASSIGN(const auto all, around.group.gather(flags));
  for (Rank rank = 0; rank < claim.surveys.size(); ++rank) {
    auto& manifests = claim.surveys[rank].manifests;
    for (std::size_t i = 0; i < manifests.size() && i < all[rank].size(); ++i)
      manifests[i].readable = all[rank][i] != std::byte{0};
  }
  claim.sources = ManifestSources(claim.surveys);
  return {};
}

/// A rank may come back on a node that has nothing of it.
Result<void> fetch_missing(Surroundings& around, Claim& claim) {
  const Rank rank = around.group.rank();
  for (const VersionKey& key : claim.sources.versions()) {
    if (claim.sources.all_at_home(key, around.group.size())) continue;
    auto manifest = fetch_manifest(around.group, claim.home(), claim.sources, key,
                                   claim.identity.store, around.log);
    if (!manifest && manifest.error().code() == Code::peer_lost)
      return Unexpected(manifest.error());
    const auto at_home = claim.sources.readers(key, rank);
    if (!manifest || at_home.empty() || at_home.front() == rank) continue;
    manifest->fingerprints = {};
    manifest->holders = {};
    claim.own.readable.push_back(*std::move(manifest));
  }
  return {};
}

/// The found identity, or a new one that rank 0 makes up.
Result<Identity> settle_identity(Surroundings& around, const std::vector<Survey>& surveys,
                                 const ClaimRequest& request) {
  std::uint64_t made[3] = {around.random.next(), around.random.next(), around.random.next()};
  if (request.seed) made[2] = *request.seed;
  BELAY_TRY(around.group.broadcast(std::as_writable_bytes(std::span(made)), 0));
  Identity identity{{made[0], made[1]}, made[2], around.group.size(), request.application};
  BELAY_ASSIGN(const auto found, common_identity(surveys));
  if (!found) return identity;
  BELAY_TRY(check_identity(*found, identity));
  return *found;
}

void remove_earlier_records(store::Tier& tier, Run run, Log& log) {
  const auto names = tier.list();
  if (!names) return log.warn("open: {}", names.error().message());
  for (const std::string& name : *names) {
    const auto parsed = format::parse_name(name);
    if (!parsed || parsed->kind != format::NameKind::run || parsed->key.run >= run) continue;
    if (auto removed = tier.remove(name); !removed) log.warn("open: {}", removed.error().message());
  }
}

/// By the leader of a node, in its directory and in those that it adopts: a rank that outlived its
/// job looks only into the directory that it writes to. There the record takes the place of older
/// ones, which nobody else would remove.
Result<void> record_run(Surroundings& around, const ClaimRequest& request, const Claim& claim,
                        std::vector<std::string> directories) {
  const std::string own = directory_of(request, request.node);
  directories.push_back(own);
  const auto bytes = format::encode_run_record(claim.record);
  for (const std::string& directory : directories) {
    // Not the overlay: it would take another leader's temporary file for its own.
    const auto tier = store::make_local_tier(around.files, directory);
    BELAY_TRY(store::put_whole(*tier, format::run_name(claim.run), bytes, /*exclusive=*/true));
    if (directory != own) remove_earlier_records(*tier, claim.run, around.log);
  }
  return {};
}

/// Collective. The part of a claim that only a global tier has, up to its survey.
Result<GlobalClaim> claim_global(Surroundings& around, const ClaimRequest& request,
                                 TakenLocks& taken) {
  GlobalClaim claim;
  BELAY_ASSIGN(const Places places, find_places(around, request));
  claim.leads_node = places.leader == around.group.rank();
  claim.directories = places.directories;
  BELAY_ASSIGN(taken,
               within("global", agree_on(around.group, take_locks(around, places, request))));
  BELAY_ASSIGN(claim.tier, agree_on(around.group, open_tier(around, places, request)));
  BELAY_ASSIGN(claim.own,
               agree_on(around.group, survey_places(around, places, request, taken.adopted)));
  return claim;
}

/// By leaders: the record of this run, and room for the mark that a version has existed.
Result<void> record_claim(Surroundings& around, const ClaimRequest& request, const Claim& claim,
                          const std::vector<std::string>& adopted, bool settled) {
  BELAY_TRY(record_run(around, request, claim, adopted));
  const auto tier = store::make_local_tier(around.files, directory_of(request, request.node));
  return settled ? Result<void>{} : prepare_settled(*tier, claim.record);
}

}  // namespace

Result<Claim> claim_store(Surroundings& around, const ClaimRequest& request) {
  Claim claim;
  BELAY_ASSIGN(const Places places, find_places(around, request));
  claim.leads_node = places.leader == around.group.rank();
  claim.ranks_on_node = places.sharers;
  BELAY_ASSIGN(auto taken, agree_on(around.group, take_locks(around, places, request)));
  claim.locks = std::move(taken.locks);
  BELAY_ASSIGN(claim.tier, agree_on(around.group, open_tier(around, places, request)));
  claim.nodes = places.nodes;
  claim.directories = places.directories;
  BELAY_ASSIGN(claim.own,
               agree_on(around.group, survey_places(around, places, request, taken.adopted)));
  ClaimRequest there = request;
  there.store = request.global;
  TakenLocks taken_there;
  if (!request.global.empty()) {
    BELAY_ASSIGN(claim.global, claim_global(around, there, taken_there));
    for (auto& lock : taken_there.locks) claim.locks.push_back(std::move(lock));
    add_global_survey(claim.own, claim.global->own);
  }
  BELAY_ASSIGN(claim.sight, agree_on(around.group, open_sight(around, request, claim)));
  BELAY_ASSIGN(claim.surveys, exchange_surveys(around.group, claim.own.survey));
  BELAY_ASSIGN(claim.identity, settle_identity(around, claim.surveys, request));
  BELAY_TRY(find_holders(around, claim));
  BELAY_TRY(fetch_missing(around, claim));
  for (const Survey& other : claim.surveys) claim.run = std::max(claim.run, other.highest_run);
  ++claim.run;
  claim.record = {claim.identity.store, claim.identity.seed, claim.run,   around.group.size(),
                  request.application,  request.host,        request.pid, around.clock.wall_ns()};
  const bool settled = std::any_of(claim.surveys.begin(), claim.surveys.end(),
                                   [](const Survey& survey) { return survey.settled; });
  Result<void> claimed;
  if (claim.leads_node) claimed = record_claim(around, request, claim, taken.adopted, settled);
  if (claimed && claim.global && claim.global->leads_node) {
    claimed = record_claim(around, there, claim, taken_there.adopted, settled);
    // A tier that came later, or was lost: without the mark it would look like a first start.
    if (claimed && settled && !claim.global->own.survey.settled)
      claimed = mark_settled(*claim.global->tier, claim.record);
  }
  BELAY_TRY(agree(around.group, claimed));
  return claim;
}

Result<void> check_still_ours(store::Tier& tier, Run run) {
  BELAY_ASSIGN(const auto names, tier.list());
  for (const std::string& name : names) {
    const auto parsed = format::parse_name(name);
    if (parsed && parsed->kind == format::NameKind::run && !parsed->temporary &&
        parsed->key.run > run)
      return fail(Code::busy,
                  "{} was opened again (run {}) while this program (run {}) was still writing; "
                  "this one must stop",
                  tier.place(), parsed->key.run, run);
  }
  return {};
}

}  // namespace belay::vote
