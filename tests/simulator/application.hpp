// SPDX-License-Identifier: Apache-2.0
// The program that a simulated rank runs: regions of every kind that grow, shrink, move, come, go
// and change in the ways that matter to a store of blocks.
#pragma once

#include <belay/belay.hpp>

#include "simulator/sim_random.hpp"
#include "simulator/sim_tracker.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace belay::simulator {

/// The bytes of one rank's regions, by name.
using State = std::map<std::string, std::vector<std::byte>>;

enum class RegionKind { value, array, vector, serializer };

/// What a name stands for throughout a history, on one rank.
struct RegionSpec {
  std::string name;
  RegionKind kind = RegionKind::vector;
  std::size_t bytes = 0;  ///< at the start; of values and arrays for good
};

/// The regions of one rank in the history of this seed.
std::vector<RegionSpec> make_specs(std::uint64_t seed, std::uint32_t rank);

/// One rank's program in one run. Sessions that protect its regions must end before it.
class Application {
 public:
  Application(std::vector<RegionSpec> specs, std::uint64_t seed);

  WriteLog& log() { return log_; }

  /// Before a restore: every region has bytes that no version has.
  void scramble();
  /// The state of a first start.
  void initialise();
  /// Protects every region that the names hold, and no others.
  Result<void> protect(Session& session, const std::set<std::string>& names);
  std::set<std::string> all_names() const;
  const std::set<std::string>& protected_names() const { return protected_; }

  /// One step of the computation: some writes, at times a region that comes, goes or moves.
  Result<void> advance(Session& session);
  /// Some writes to one region.
  void write(const std::string& name);

  std::vector<std::byte> bytes_of(const std::string& name) const;
  State state() const;
  /// The library filled the regions: no tracker knows anything any more.
  void restored() { log_.forget_all(); }

 private:
  struct Region {
    RegionSpec spec;
    std::vector<std::byte> bytes;          ///< of arrays, vectors and serializers
    std::array<std::uint64_t, 5> value{};  ///< of values
    std::vector<std::byte> earlier;        ///< what it held before, to return to
    std::span<std::byte> content();
  };

  Result<void> protect(Session& session, Region& region);
  Result<void> come_or_go(Session& session);
  void fill(std::span<std::byte> piece);
  void resize(Region& region);
  void write(Region& region);

  SimRandom random_;
  std::map<std::string, std::unique_ptr<Region>> regions_;
  std::set<std::string> protected_;
  WriteLog log_;
};

}  // namespace belay::simulator
