// SPDX-License-Identifier: Apache-2.0
// A directory that is as slow as a file system which many share: all processes together get so many
// bytes a second, and every operation on names waits for its turn. It stands for hardware that is
// not there: the files themselves lie on the disk.
#pragma once

#include "os/faulty_files.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

namespace belay::bench {

struct Pace {
  std::uint64_t bytes_per_s = 0;  ///< of reads and writes, in sum; 0: as fast as the disk
  std::uint64_t name_ns = 0;      ///< of one operation on names
};

/// What went to the directory and came from it, by all processes.
struct Traffic {
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t name_operations = 0;  ///< create, open, list, rename, remove, ...
};

class SlowTier {
 public:
  /// Processes that give the same `state` file share one pace. Ends the program if it cannot be
  /// made. REQUIRES: everything below `directory` is written through files().
  SlowTier(const std::filesystem::path& state, const std::filesystem::path& directory);
  ~SlowTier();
  SlowTier(const SlowTier&) = delete;
  SlowTier& operator=(const SlowTier&) = delete;

  os::Files& files() { return files_; }
  /// By one process, while none uses the directory. Traffic counts from here on.
  void begin(const Pace& pace);
  Traffic traffic() const;

 private:
  struct State;

  void charge(const os::Operation& operation);
  void wait_turn(std::atomic<std::uint64_t>& free_at_ns, std::uint64_t takes_ns) const;

  std::string prefix_;
  State* state_;
  os::FaultyFiles files_;
};

}  // namespace belay::bench
