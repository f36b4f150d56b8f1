// SPDX-License-Identifier: Apache-2.0
// Options resolved: defaults, then the TOML file, then the environment, then code.
#pragma once

#include <belay/options.hpp>
#include <belay/result.hpp>

#include "base/level.hpp"
#include "base/name_match.hpp"
#include "base/nouns.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace belay {

enum class Background { thread, inline_, head };
enum class Late { wait, skip };
/// `automatic`: collective where versions survive losses of nodes, else local.
enum class Dedup { automatic, none, local, collective, collective_unshuffled };

struct Interval {
  enum class Kind { automatic, time, calls } kind = Kind::automatic;
  std::uint64_t time_ns = 0;
  std::uint64_t calls = 0;
};

/// Which codec for which region: the first glob that its name fits counts.
struct CodecRules {
  std::vector<std::pair<std::string, std::string>> rules;  ///< glob, and `auto` or a codec's name
  std::string otherwise;

  bool all_raw() const { return rules.empty() && otherwise == "raw"; }
};

struct Settings {
  std::string store = "./belay-store";
  std::string application;
  std::uint32_t block_bytes = 16 << 10;
  HashKind hash = HashKind::xxh3;
  std::uint64_t keep = 2;
  Interval interval;
  std::uint64_t mtbf_ns = 24ull * 3600 * 1000000000;
  Background background = Background::thread;
  Late late = Late::wait;
  std::optional<std::uint64_t> staging_bytes;  ///< unset: 25% of protected memory, 64 MiB at least
  std::size_t segments = 64;
  std::uint64_t timeout_ns = 300ull * 1000000000;
  Dedup dedup = Dedup::automatic;
  std::size_t dedup_table = 131072;  ///< frequent blocks that ranks tell each other of
  Level redundancy;                  ///< of every version, unless there are `levels`
  std::optional<LevelPlan> levels;
  std::string global;                      ///< directory of the global tier; empty: there is none
  std::uint64_t aggregate = 32;            ///< ranks that share a file of the global tier
  bool aggregate_given = false;            ///< so many were asked for: the default does less
  CodecRules codec{{}, "auto"};            ///< of the global tier
  CodecRules local_codec{{}, "raw"};       ///< of nodes
  NameMatch match;                         ///< of variables on the global tier
  std::optional<std::uint64_t> bandwidth;  ///< bytes per second of the global tier; unset: measured
  std::uint64_t heads_per_node = 1;
  std::optional<std::string> node;
  std::optional<std::uint64_t> ranks_per_node;
  std::optional<std::uint64_t> seed;  ///< of a new store's fingerprints; unset: random
  LogLevel log = LogLevel::warn;

  LevelPlan level_plan() const { return levels ? *levels : LevelPlan{{{redundancy, 1}}, {}}; }
  /// Does a part of the versions go to the global tier as well?
  bool has_global_tier() const { return level_plan().global && !level_plan().rules.empty(); }
  /// Nothing stays on nodes: the global tier is the store.
  bool diskless() const { return level_plan().global && level_plan().rules.empty(); }
  Dedup chosen_dedup() const {
    if (dedup != Dedup::automatic) return dedup;
    return survives_losses() ? Dedup::collective : Dedup::local;
  }
  /// The same for versions of one level: those that survive no loss leave nothing to other nodes.
  Dedup dedup_of(const Level& level) const {
    if (dedup != Dedup::automatic) return dedup;
    return level.losses() > 0 ? Dedup::collective : Dedup::local;
  }
  bool dedups() const { return chosen_dedup() != Dedup::none; }
  /// Is there a level that keeps blocks on more than one node?
  bool survives_losses() const;
  /// Do ranks plan together what each of them stores, and for whom?
  bool plans_together() const {
    return survives_losses() || chosen_dedup() == Dedup::collective ||
           chosen_dedup() == Dedup::collective_unshuffled || background == Background::head;
  }
};

struct ResolvedOptions {
  Settings settings;
  std::vector<std::string> warnings;  ///< unknown names, with the nearest match
};

struct OptionSources {
  Options code;
  std::vector<std::pair<std::string, std::string>> environment;  ///< BELAY_* variables
  std::string program;                                           ///< default of `application`
  /// Reads the file that BELAY_CONFIG names.
  std::function<Result<std::string>(const std::string& path)> read_file;
};

/// Errors name the option, where its value came from, the value, and what would be right.
Result<ResolvedOptions> resolve_options(const OptionSources& sources);

/// Every setting that must be the same on all ranks, as text: `name=value` lines.
std::string shared_settings(const Settings& settings);

/// Names of regions, applications and nodes: 1 to 255 bytes of UTF-8 without control characters.
Result<void> check_name(std::string_view what, std::string_view name);

/// 16384 -> "16.0 KiB".
std::string format_bytes(std::uint64_t bytes);

}  // namespace belay
