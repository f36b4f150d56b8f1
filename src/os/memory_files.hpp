// SPDX-License-Identifier: Apache-2.0
// A file system in memory that can lose power, for the simulator and other tests.
//
// The model is as strict as POSIX allows. Contents are durable after sync() of the file only, names
// after sync_directory() of the directory only: neither implies the other. Directories themselves
// are durable when make_directory() returns, and with them whatever was pending in their parents.
#pragma once

#include "os/clock.hpp"
#include "os/files.hpp"

#include <memory>
#include <string>
#include <vector>

namespace belay::os {

/// Thread-safe, deterministic. Paths are resolved by their text: "." and ".." are known, links do
/// not exist, the working directory is the root. Directories cannot be renamed. Stricter than the
/// kernel: unaligned writes to files created with `direct` are invalid_argument.
class MemoryFiles final : public Files {
 public:
  MemoryFiles();
  ~MemoryFiles() override;

  /// Loses power and comes back. Of the changes of names since they were last made durable, each is
  /// kept or lost at random; those that no longer make sense without the lost ones are lost too. A
  /// rename is one change: if lost, the old name and a replaced target are back. Of the unsynced
  /// writes to each file, each is kept, lost, or leaves zeros where it made the file longer; the
  /// last one kept may be torn at any byte. Open files are dead, locks are released.
  void power_cut(Random& random);

  /// Writes and reservations beyond fail with no_space; what fits of a write is written. The
  /// default is 1 TiB.
  void set_capacity(std::uint64_t bytes);
  /// What space() says; nothing else depends on it.
  void set_in_memory(bool in_memory);

  std::vector<std::string> paths() const;  ///< of all files: absolute, sorted
  std::uint64_t total_bytes() const;       ///< the sum of their sizes
  Result<std::vector<std::byte>> peek(const std::string& path) const;
  /// What is left if a power cut takes all that it may.
  std::unique_ptr<MemoryFiles> durable() const;

  // Damage: at once and durable.
  Result<void> flip(const std::string& path, std::uint64_t bit);
  Result<void> cut(const std::string& path, std::uint64_t bytes);  ///< REQUIRES: no growth
  Result<void> erase(const std::string& path);  ///< a file, or a directory with all below it

  Result<std::unique_ptr<File>> create(const std::string& path, bool direct) override;
  Result<std::unique_ptr<File>> create_from(const std::string& retired, const std::string& path,
                                            bool direct) override;
  Result<std::unique_ptr<File>> open(const std::string& path, bool direct) override;
  Result<std::uint64_t> touch(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> rename_new(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Result<Space> space(const std::string& path) override;
  Result<std::unique_ptr<Lock>> lock(const std::string& path, const std::string& owner) override;

 private:
  class Disk;
  class OpenFile;
  class HeldLock;
  Result<void> move(const std::string& from, const std::string& to, bool replace);

  std::shared_ptr<Disk> disk_;  ///< shared with open files and locks
};

}  // namespace belay::os
