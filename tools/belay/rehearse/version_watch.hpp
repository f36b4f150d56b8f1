// SPDX-License-Identifier: Apache-2.0
// The versions of a scratch store, read as they come to exist: a program that keeps only few of
// them cannot take away what was seen.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "os/files.hpp"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace belay::tool {

/// A version that all ranks voted for, without the places of its blocks.
struct SeenVersion {
  VersionKey key;
  VersionKey parent;            ///< {0, 0}: none
  std::vector<Manifest> ranks;  ///< by rank
};

class VersionWatch {
 public:
  VersionWatch(os::Files& files, std::string store) : files_(files), store_(std::move(store)) {}

  /// Reads the manifests that are new. A store that is not there yet is empty.
  Result<void> look();
  /// Oldest first.
  const std::vector<SeenVersion>& versions() const { return versions_; }
  Run highest_run() const { return highest_run_; }  ///< 0: nobody has opened the store
  /// Ranks of the newest version that is not complete, of how many; {0, 0} if all are.
  std::pair<std::size_t, std::size_t> incomplete() const;
  const std::string& store() const { return store_; }

 private:
  Result<void> look_into(const std::string& directory);
  void complete(VersionKey key);

  os::Files& files_;
  std::string store_;
  Run highest_run_ = 0;
  std::set<std::pair<VersionKey, Rank>> read_;
  std::map<VersionKey, std::map<Rank, Manifest>> pending_;
  std::vector<SeenVersion> versions_;
};

}  // namespace belay::tool
