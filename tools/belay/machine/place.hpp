// SPDX-License-Identifier: Apache-2.0
// Where a store would lie: the directory, its file system, and what that means for checkpoints.
#pragma once

#include <belay/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace belay::tool {

struct Place {
  std::string store;      ///< as it was named, made absolute
  std::string directory;  ///< the store, or its nearest parent that exists
  bool exists = false;    ///< directory is the store
};

/// For commands that look at one place only; invalid_argument if there are more.
Result<std::string> only_one(const std::vector<std::string>& stores);

/// invalid_argument if something that is no directory is in the way.
Result<Place> find_place(const std::string& store);

struct FileSystem {
  enum class Kind { disk, memory, network, layered, unknown };
  std::string name;  ///< ext4, nfs, ...
  Kind kind = Kind::unknown;
  bool read_only = false;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;    ///< for this user
  std::uint64_t total_inodes = 0;  ///< 0: this file system does not count them
  std::uint64_t free_inodes = 0;
};

Result<FileSystem> file_system_of(const std::string& directory);

}  // namespace belay::tool
