// SPDX-License-Identifier: Apache-2.0
#include "aggregate/sets.hpp"
#include "base/try.hpp"
#include "os/host.hpp"
#include "session/core.hpp"
#include "session/division.hpp"
#include "session/head.hpp"
#include "session/linkage.hpp"
#include "session/seams.hpp"
#include "vote/agreement.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

namespace belay::session {
namespace {

constexpr unsigned kMostHashThreads = 16;  // memory bandwidth is used up long before
constexpr std::uint64_t kDefaultTimeoutNs = 300'000'000'000;

Result<std::string> read_text(os::Files& files, const std::string& path) {
  constexpr std::uint64_t kMost = 1 << 20;
  BELAY_ASSIGN(const auto file, files.open(path, /*direct=*/false));
  BELAY_ASSIGN(const std::uint64_t size, file->size());
  if (size > kMost)
    return fail(Code::invalid_argument, "{}: {} bytes are too many for a configuration file", path,
                size);
  std::string text(size, '\0');
  BELAY_ASSIGN(const std::size_t got,
               file->read(0, std::as_writable_bytes(std::span<char>(text.data(), text.size()))));
  text.resize(got);
  return text;
}

Result<void> make_absolute(std::string_view option, std::string& path) {
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  if (failed) return fail(Code::io, "{} {}: {}", option, path, failed.message());
  path = absolute.lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return {};
}

/// A loss of the store must not take the global tier with it.
Result<void> check_apart(const Settings& settings) {
  const auto real = [](const std::string& path) {
    std::error_code failed;
    const auto found = std::filesystem::weakly_canonical(path, failed);
    return failed ? std::filesystem::path(path) : found;
  };
  const auto store = real(settings.store);
  const auto global = real(settings.global);
  const auto differ = std::mismatch(store.begin(), store.end(), global.begin(), global.end());
  if (differ.first != store.end()) return {};
  return fail(Code::invalid_argument,
              "global {} lies in `store` {}: it would be lost together with it; use a directory of "
              "its own on the parallel file system",
              settings.global, settings.store);
}

codec::Wishes wishes_of(const CodecRules& rules, double bytes_per_second) {
  return {rules.rules, rules.otherwise, bytes_per_second};
}

/// Do the options name codecs that there are?
Result<void> check_codecs(const Settings& settings) {
  BELAY_TRY(within("codec", codec::check(wishes_of(settings.codec, 1))));
  return within("local_codec", codec::check(wishes_of(settings.local_codec, 1)));
}

constexpr double kGuessedShare = 200e6;  ///< of the global tier, bytes per second

std::unique_ptr<codec::Chooser> make_global_chooser(const Settings& settings) {
  const double there =
      settings.bandwidth ? static_cast<double>(*settings.bandwidth) : kGuessedShare;
  return std::make_unique<codec::Chooser>(wishes_of(settings.codec, there));
}

/// For segments, where the session writes them; null if they are raw.
std::unique_ptr<codec::Chooser> make_chooser(const Settings& settings) {
  constexpr double kGuessedDisk = 1e9;
  if (settings.diskless()) return make_global_chooser(settings);
  if (settings.local_codec.all_raw()) return nullptr;
  const bool told = settings.bandwidth && !settings.has_global_tier();
  const double there = told ? static_cast<double>(*settings.bandwidth) : kGuessedDisk;
  return std::make_unique<codec::Chooser>(wishes_of(settings.local_codec, there));
}

Result<ResolvedOptions> resolve(const Seams& seams, Options options) {
  BELAY_ASSIGN(auto resolved, resolve_options({.code = std::move(options),
                                               .environment = seams.environment,
                                               .program = seams.program,
                                               .read_file = [&](const std::string& path) {
                                                 return read_text(*seams.files, path);
                                               }}));
  // The program may change its working directory later.
  Settings& settings = resolved.settings;
  BELAY_TRY(make_absolute("store", settings.store));
  if (!settings.level_plan().global) settings.global.clear();
  if (!settings.global.empty()) BELAY_TRY(make_absolute("global", settings.global));
  if (settings.diskless()) settings.store = settings.global;
  if (settings.has_global_tier()) BELAY_TRY(check_apart(settings));
  BELAY_TRY(check_codecs(settings));
  return resolved;
}

/// Every rank must have been told the same.
Result<void> check_same_settings(ranks::Group& group, const Settings& settings) {
  BELAY_ASSIGN(const auto all, vote::gather_texts(group, shared_settings(settings)));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const auto differ =
        std::mismatch(all[0].begin(), all[0].end(), all[rank].begin(), all[rank].end());
    const auto at = static_cast<std::size_t>(differ.first - all[0].begin());
    const auto line = [&](const std::string& text) {
      const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
      const std::size_t begin = start == std::string::npos ? 0 : start + 1;
      return text.substr(begin, text.find('\n', begin) - begin);
    };
    return fail(
        Code::invalid_argument,
        "options differ between ranks: rank 0 has {}, rank {} has {}; set them alike on all",
        line(all[0]), rank, line(all[rank]));
  }
  return {};
}

std::string node_of(const Settings& settings, const Seams& seams, Rank rank) {
  if (settings.node) return *settings.node;
  if (settings.ranks_per_node) return std::to_string(rank / *settings.ranks_per_node);
  return seams.host;
}

/// Collective. On which node each rank is, by number.
Result<std::vector<dedup::Node>> number_nodes(ranks::Group& group, const std::string& node) {
  BELAY_ASSIGN(const auto names, vote::gather_texts(group, node));
  std::vector<dedup::Node> nodes;
  for (const std::string& name : names)
    nodes.push_back(
        static_cast<dedup::Node>(std::find(names.begin(), names.end(), name) - names.begin()));
  return nodes;
}

/// An error if there are too few nodes for a level.
Result<void> check_levels(const Settings& settings, const std::vector<dedup::Node>& nodes) {
  for (const Level& level : settings.level_plan().levels()) {
    const std::size_t there = std::set<dedup::Node>(nodes.begin(), nodes.end()).size();
    if (there < level.least_nodes())
      return fail(Code::invalid_argument,
                  "redundancy or levels: {} needs {} nodes, but the {} ranks run on {} (use more "
                  "nodes or a weaker level; BELAY_NODE or BELAY_RANKS_PER_NODE tell nodes apart "
                  "where one host plays several)",
                  name_of(level), level.least_nodes(), nodes.size(), there);
  }
  return {};
}

/// Less than what other ranks wait for this one, so that all hear who holds the lock.
std::uint64_t lock_patience(const Settings& settings) {
  constexpr std::uint64_t kMostNs = 10'000'000'000;
  return std::min(kMostNs, settings.timeout_ns / 2);
}

std::unique_ptr<Worker> make_worker(const Settings& settings, const Seams& seams) {
  if (seams.make_worker) return seams.make_worker();
  return settings.background == Background::inline_ ? make_inline_worker() : make_thread_worker();
}

/// A drain may take longer than ranks wait for a silent peer: even where everything happens inside
/// calls it has a thread, so that the call can keep step with the others.
std::unique_ptr<Worker> make_drain_worker(const Seams& seams) {
  return seams.make_worker ? seams.make_worker() : make_thread_worker();
}

/// Collective. A group for the worker; null if it must not communicate.
Result<std::unique_ptr<ranks::Group>> group_for_voyages(ranks::Group& group,
                                                        const Settings& settings, Log& log) {
  if (settings.background != Background::thread ||
      (!settings.plans_together() && !settings.diskless()))
    return std::unique_ptr<ranks::Group>();
  auto second = group.duplicate();
  if (second || second.error().code() != Code::unsupported) return second;
  if (settings.plans_together())
    log.info("copies are exchanged inside checkpoint(): {}", second.error().message());
  return std::unique_ptr<ranks::Group>();
}

/// Without files on nodes: may ranks share files on the global tier?
bool wants_bundles(const Settings& settings, const ranks::Group& group) {
  return settings.diskless() && group.size() > 1 && settings.aggregate > 1 &&
         settings.background != Background::head;
}

/// The same on all ranks: do they?
void prepare_bundles(detail::CoreParts& parts) {
  const Settings& settings = parts.settings;
  const bool in_call = settings.background == Background::inline_ || settings.aggregate_given;
  parts.bundles = parts.voyages || in_call;
  if (!parts.bundles) {
    // A slow file system would hold the program up, which nobody has asked for.
    parts.log->info(
        "each rank has files of its own on the global tier, since the background must not "
        "communicate (if `aggregate` is set, checkpoint() writes those that ranks share)");
    return;
  }
  const auto ranks = static_cast<Rank>(parts.nodes.size());
  const auto over = aggregate::sets_over_nodes(ranks, settings.aggregate).size();
  const auto on = aggregate::sets_on_nodes(parts.nodes, settings.aggregate).size();
  parts.sets_over_nodes = over < on;
  parts.log->info("a version has {} files on the global tier, written {}", std::min(over, on),
                  parts.voyages ? "in the background" : "inside checkpoint()");
}

/// For those of a node's ranks that drain. Where everything runs inline there are none.
unsigned encode_threads(const Settings& settings, const Seams& seams, Rank ranks_on_node) {
  if (settings.background == Background::inline_ || seams.make_worker) return 0;
  const auto sets =
      static_cast<unsigned>((ranks_on_node + settings.aggregate - 1) / settings.aggregate);
  return std::clamp(os::usable_processors() / (2 * sets), 1u, kMostHashThreads);
}

/// Collective. A group for drains in the background, where sets of ranks reach over nodes; an error
/// with `unsupported` says why there is none.
Result<std::unique_ptr<ranks::Group>> group_for_drains(ranks::Group& group,
                                                       const Settings& settings) {
  if (settings.background == Background::thread) return group.duplicate();
  return fail(Code::unsupported, "with background = {}",
              settings.background == Background::head ? "head" : "inline");
}

/// Collective. Sets of ranks reach over nodes if that makes fewer of them, and the background may
/// communicate, or so many ranks were asked for; then calls do what it may not. Who has heads wants
/// calls to do nothing of the kind.
Result<void> prepare_sets(ranks::Group& group, detail::CoreParts& parts) {
  const Settings& settings = parts.settings;
  if (!settings.has_global_tier()) return {};
  const auto over = aggregate::sets_over_nodes(group.size(), settings.aggregate).size();
  const auto on = aggregate::sets_on_nodes(parts.nodes, settings.aggregate).size();
  if (over >= on) {
    parts.log->info("a version has {} files on the global tier, each of ranks of one node", on);
    return {};
  }
  auto second = group_for_drains(group, settings);
  if (!second && second.error().code() != Code::unsupported) return Unexpected(second.error());
  parts.sets_over_nodes =
      second || (settings.aggregate_given && settings.background != Background::head);
  if (!parts.sets_over_nodes)
    parts.log->info(
        "a version has {} files on the global tier, each of ranks of one node; {} would do, but "
        "the background must not communicate: {} (without heads, calls do it if you set "
        "`aggregate`)",
        on, over, second.error().message());
  else if (!second)
    parts.log->info(
        "a version has {} files on the global tier, as `aggregate` says, written inside "
        "collective calls, since the background must not communicate: {}",
        over, second.error().message());
  else
    parts.log->info(
        "a version has {} files on the global tier, each of ranks of several nodes, written in "
        "the background",
        over);
  if (second) parts.drains = *std::move(second);
  return {};
}

unsigned hash_threads(const Seams& seams, Rank ranks_on_node) {
  if (seams.hash_threads != 0) return seams.hash_threads;
  return std::clamp(os::usable_processors() / ranks_on_node, 1u, kMostHashThreads);
}

Result<std::unique_ptr<fingerprint::Hasher>> make_hasher(HashKind kind, std::uint64_t seed) {
  auto hasher = fingerprint::make_hasher(kind, seed);
  if (!hasher)
    return fail(Code::unsupported,
                "hash = {}: the cryptographic library here does not offer it; "
                "use xxh3",
                fingerprint::name_of(kind));
  return hasher;
}

}  // namespace

Seams system_seams() {
  Seams seams;
  seams.files = &os::posix_files();
  seams.clock = &os::system_clock();
  seams.random = &os::system_random();
  seams.host = os::host_name();
  seams.program = os::program_name();
  seams.pid = os::process_id();
  seams.environment = os::environment("BELAY_");
  return seams;
}

namespace {

/// What a head can know before it gets an order: that it has the memory, and reaches the store.
Result<Session> prepare_head(const Seams& seams, detail::CoreParts parts, Division division) {
  if (!parts.settings.diskless()) BELAY_TRY(seams.files->make_directory(parts.settings.store));
  detail::HeadParts head;
  head.settings = std::move(parts.settings);
  head.log = std::move(parts.log);
  head.clock = seams.clock;
  head.files = seams.files;
  head.heads = std::move(division.group);
  head.crews = std::move(division.roles.crews);
  head.joined = std::move(division.joined);
  head.lines = std::move(division.lines);
  head.drain_lines = std::move(division.drain_lines);
  head.make_chooser = [settings = head.settings] { return make_global_chooser(settings); };
  head.encode_threads = encode_threads(head.settings, seams, static_cast<Rank>(head.lines.size()));
  head.drain_bytes = head.settings.staging_bytes.value_or(detail::kLeastStagingBytes);
  return Session(std::make_unique<detail::Head>(std::move(head)));
}

/// Collective over `whole`, all processes. Ranks write nothing before all heads are ready, and
/// heads hear whether ranks have opened.
Result<Session> open_head(const Seams& seams, ranks::Group& whole, detail::CoreParts parts,
                          Division division) {
  auto prepared = within("head", within_memory([&] {
                           return prepare_head(seams, std::move(parts), std::move(division));
                         }));
  BELAY_ASSIGN(auto head, vote::agree_on(whole, std::move(prepared)));
  BELAY_TRY(vote::agree(whole, {}));
  BELAY_TRY(whole.close());
  return head;
}

Result<Session> open_rank(const Seams& seams, std::unique_ptr<ranks::Group> group,
                          const std::string& node, detail::CoreParts parts) {
  const bool together = parts.settings.plans_together() || parts.settings.has_global_tier();
  const bool wanted = wants_bundles(parts.settings, *group);
  if (together || wanted) {
    BELAY_ASSIGN(parts.nodes, number_nodes(*group, node));
    BELAY_TRY(check_levels(parts.settings, parts.nodes));
    BELAY_ASSIGN(parts.voyages, group_for_voyages(*group, parts.settings, *parts.log));
    BELAY_TRY(prepare_sets(*group, parts));
    if (wanted) prepare_bundles(parts);
    if (!together && !parts.bundles) parts.nodes.clear();
  }

  vote::Surroundings around{*group, *seams.files, *seams.clock, *seams.random, *parts.log};
  const Settings& settings = parts.settings;
  BELAY_ASSIGN(parts.claim,
               vote::claim_store(
                   around, {.store = settings.store,
                            .node = node,
                            .application = settings.application,
                            .host = seams.host,
                            .pid = seams.pid,
                            .patience_ns = lock_patience(settings),
                            .global = settings.has_global_tier() ? settings.global : std::string(),
                            .sees_all = settings.diskless(),
                            .seed = settings.seed}));
  BELAY_ASSIGN(parts.hasher,
               vote::agree_on(*group, make_hasher(settings.hash, parts.claim.identity.seed)));
  parts.parallel = std::make_unique<os::Parallel>(hash_threads(seams, parts.claim.ranks_on_node));
  parts.read_threads = seams.read_threads;
  parts.chooser = make_chooser(settings);
  parts.worker = make_worker(settings, seams);
  if (settings.has_global_tier()) {
    parts.drain_worker = make_drain_worker(seams);
    parts.global_chooser = make_global_chooser(settings);
  }
  if (settings.has_global_tier() || parts.bundles) {
    parts.drain_threads = !seams.make_worker;
    parts.encode_threads = encode_threads(settings, seams, parts.claim.ranks_on_node);
    parts.drain_bytes = seams.drain_bytes;
  }
  parts.tracker = seams.make_tracker ? seams.make_tracker() : capture::make_no_tracker();
  parts.group = std::move(group);
  return Session(std::make_unique<detail::SessionCore>(std::move(parts)));
}

/// The other side of open_head().
Result<Session> open_beside_heads(const Seams& seams, ranks::Group& whole,
                                  std::unique_ptr<ranks::Group> group, const std::string& node,
                                  detail::CoreParts parts) {
  BELAY_TRY(vote::agree(whole, {}));
  auto opened =
      within_memory([&] { return open_rank(seams, std::move(group), node, std::move(parts)); });
  // Who has lost a peer has waited for it; heads do so themselves.
  if (!opened && opened.error().code() == Code::peer_lost) return opened;
  const auto told = vote::agree(whole, opened ? Result<void>() : Unexpected(opened.error()));
  if (!opened) return opened;
  BELAY_TRY(told);
  BELAY_TRY(whole.close());
  return opened;
}

}  // namespace

Result<Session> open_session(const Seams& seams, const MakeGroup& make_group, Options options) {
  const LogCallback callback = options.on_log;
  // A rank whose options are wrong still joins, so that all ranks fail together and not by waiting.
  auto resolved = resolve(seams, std::move(options));
  const std::uint64_t timeout = resolved ? resolved->settings.timeout_ns : kDefaultTimeoutNs;
  BELAY_ASSIGN(auto group, within("open", make_group(timeout, *seams.clock)));
  BELAY_ASSIGN(auto agreed, within("open", vote::agree_on(*group, std::move(resolved))));

  detail::CoreParts parts;
  parts.settings = std::move(agreed.settings);
  parts.clock = seams.clock;
  parts.log = std::make_unique<Log>(parts.settings.log, callback);
  for (const std::string& warning : agreed.warnings) parts.log->warn("{}", warning);
  BELAY_TRY(within("open", check_same_settings(*group, parts.settings)));

  const std::string node = node_of(parts.settings, seams, group->rank());
  if (parts.settings.background == Background::head) {
    BELAY_ASSIGN(auto division,
                 within("open", divide(*group, parts.settings, node, *seams.random)));
    if (division.is_head)
      return within("open", open_head(seams, *group, std::move(parts), std::move(division)));
    parts.head = std::move(division.head);
    parts.drain_line = std::move(division.drains);
    return within("open", open_beside_heads(seams, *group, std::move(division.group), node,
                                            std::move(parts)));
  }
  return within("open", open_rank(seams, std::move(group), node, std::move(parts)));
}

Result<Session> open_over(const MakeGroup& make_group, Options options) {
  return within_memory(
      [&] { return open_session(system_seams(), make_group, std::move(options)); });
}

}  // namespace belay::session

namespace belay {

Result<Session> open(Options options) {
  return session::open_over(
      [](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
        return ranks::make_solo_group();
      },
      std::move(options));
}

}  // namespace belay
