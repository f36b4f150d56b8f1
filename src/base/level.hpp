// SPDX-License-Identifier: Apache-2.0
// How safe a version is: which losses of nodes it survives, and by what means.
#pragma once

#include <belay/result.hpp>
#include <belay/types.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

/// What a version keeps on nodes.
struct Level {
  /// The values are part of the file format.
  enum class Kind : std::uint8_t { local = 0, replicas = 1, erasure = 2 };

  Kind kind = Kind::local;
  std::uint8_t copies = 1;   ///< K of replicas:K: on so many nodes every block is
  std::uint8_t members = 0;  ///< k of erasure:k+m
  std::uint8_t shards = 0;   ///< m of erasure:k+m

  static Level replicas(std::uint8_t copies) {
    return copies <= 1 ? Level{} : Level{Kind::replicas, copies, 0, 0};
  }
  static Level erasure(std::uint8_t members, std::uint8_t shards) {
    return {Kind::erasure, 1, members, shards};
  }

  bool has_parity() const { return kind == Kind::erasure; }
  /// Any so many nodes may be lost (of each set).
  std::uint32_t losses() const { return has_parity() ? shards : copies - 1u; }
  /// So many nodes it takes.
  std::uint32_t least_nodes() const { return has_parity() ? members + shards : copies; }
  bool operator==(const Level&) const = default;
};

/// "local", "replicas:2", "erasure:4+2"
std::string name_of(const Level& level);

/// Which version gets which level: those whose number `every` divides.
struct LevelRule {
  Level level;
  std::uint64_t every = 1;
  bool operator==(const LevelRule&) const = default;
};

/// What `redundancy` or `levels` ask for.
struct LevelPlan {
  std::vector<LevelRule> rules;         ///< none: nothing stays on nodes, everything is global
  std::optional<std::uint64_t> global;  ///< every so-many-th version goes to the global tier too

  /// The strongest that is due; if none is, the weakest of all.
  Level level_of(Version version) const;
  bool is_global(Version version) const { return global && version % *global == 0; }
  /// Levels that versions may get, each once, the weakest first.
  std::vector<Level> levels() const;
  /// Of these the strongest that is not stronger than `level`; the weakest if all are.
  Level nearest(const Level& level) const;
  bool operator==(const LevelPlan&) const = default;
};

/// `local:1,replicas:2:4,erasure:4+2:16,global:32`
std::string to_text(const LevelPlan& plan);
/// The same read; `:1` may be left out.
Result<LevelPlan> parse_levels(std::string_view text);
/// The value of `redundancy`: none, replicas:K, erasure:k+m.
Result<Level> parse_redundancy(std::string_view text);

}  // namespace belay
