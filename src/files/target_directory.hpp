// SPDX-License-Identifier: Apache-2.0
// A directory that files are written into, by paths that may be hostile. Nothing outside is ever
// touched: links below it are not followed.
#pragma once

#include <belay/result.hpp>

#include "os/descriptor.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace belay::files {

/// What a written file gets before it has its name.
struct FileAttributes {
  std::uint32_t mode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t atime_ns = 0;
};

class TargetDirectory {
 public:
  /// Made if it is not there. It may be a link itself: the user has named it.
  static Result<TargetDirectory> open(const std::string& path);

  /// A file below this directory, which appears under its path when it is complete, or not at all:
  /// `fill` writes to a descriptor of a temporary file of `bytes` zeros. Directories on the way
  /// are made. invalid_argument: there is something of this name and not `force`, or a link is in
  /// the way; and whatever `fill` returns.
  Result<void> write(const std::string& path, std::uint64_t bytes, const FileAttributes& attributes,
                     bool force, const std::function<Result<void>(int descriptor)>& fill);
  /// Makes the names of all files written so far durable.
  Result<void> sync();

 private:
  TargetDirectory(std::string path, os::Descriptor directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}
  Result<os::Descriptor> parent_of(const std::string& path) const;

  std::string path_;
  os::Descriptor directory_;
  std::set<std::string> unsynced_;  ///< paths
};

}  // namespace belay::files
