// SPDX-License-Identifier: Apache-2.0
// What lies in a simulated store, as far as the oracle needs to know, and damage to it.
#pragma once

#include "base/nouns.hpp"
#include "os/memory_files.hpp"
#include "simulator/sim_random.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::simulator {

struct StoreCensus {
  std::set<Version> versions;          ///< that any rank has a manifest of
  std::vector<std::size_t> manifests;  ///< by rank
  std::vector<std::size_t> segments;   ///< by rank
  std::size_t copies = 0;              ///< of segments, and shards
  std::size_t temporaries = 0;
  Version highest_number = 0;  ///< in any name
  bool traces() const;         ///< of any version
};

StoreCensus take_census(const os::MemoryFiles& files, Rank ranks);

struct DamageDone {
  std::string what;  ///< for the trace
  std::string path;  ///< of the damaged file
  /// The flipped bit of a copy, shard or member, or of a segment that other ranks count on: it is
  /// read only when it is needed.
  std::optional<std::uint64_t> hidden;
  std::set<Version> versions;  ///< that count on the damaged file
  /// It was the mark that a version has existed; or there is none, since it could not be written.
  bool settled_mark = false;
};

/// Flips a bit of a file of the store, or cuts or erases it. Without files it does nothing.
DamageDone damage_store(os::MemoryFiles& files, SimRandom& random);

/// Is this on the global tier?
bool is_global(const std::string& path);
/// A bundle, segment or copy, under its own name.
bool has_blocks(const std::string& path);

/// Erases the directory of this name, not on the global tier. Without files in it it does nothing.
DamageDone lose_node(os::MemoryFiles& files, const std::string& node);
/// Any of those that have files; empty: there is none.
std::string any_node(os::MemoryFiles& files, SimRandom& random);

}  // namespace belay::simulator
