// SPDX-License-Identifier: Apache-2.0
// What moving bytes costs at least: a copy into a neighbour's memory, a write to a new file, the
// kernel of an erasure code. CPU time is of all ranks together; all work at the same time.
#pragma once

#include "measure/image.hpp"
#include "measure/team.hpp"
#include "redundancy/erasure_code.hpp"

#include <filesystem>
#include <memory>

namespace belay::bench {

/// Memory of the neighbour that this rank can write to. REQUIRES: MPI is initialised.
class NeighbourMemory {
 public:
  static constexpr std::size_t kBytes = 8 << 20;

  /// Collective, as are all members. Ends the program if there is none.
  NeighbourMemory();
  ~NeighbourMemory();
  NeighbourMemory(const NeighbourMemory&) = delete;
  NeighbourMemory& operator=(const NeighbourMemory&) = delete;

  /// CPU milliseconds to put the whole image there, piece after piece.
  double send_cpu_ms(Team& team, Image& image);

 private:
  struct Window;
  std::unique_ptr<Window> window_;
};

/// CPU milliseconds to write the whole image to a new file, and to remove that again.
struct FileCost {
  double write_cpu_ms = 0;
  double remove_cpu_ms = 0;
};
FileCost measure_file(Team& team, Image& image, const std::filesystem::path& directory);

/// CPU milliseconds to make all shards of the whole image.
double encode_cpu_ms(Team& team, Image& image, const redundancy::ErasureScheme& scheme);

}  // namespace belay::bench
