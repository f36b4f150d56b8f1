// SPDX-License-Identifier: Apache-2.0
// What the kernel tells about files in directories. It is a hint: other hosts' writes to a shared
// file system are not told, and the queue may overflow. Whoever uses it looks for himself as well.
#pragma once

#include <belay/result.hpp>

#include "os/descriptor.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace belay::files {

class DirectoryWatch {
 public:
  static Result<DirectoryWatch> make();

  /// Watches this directory, by its path below the top one; again does no harm. An error means that
  /// nothing will be told of it.
  Result<void> add(const std::string& directory, const std::string& below);
  int descriptor() const { return descriptor_.number(); }  ///< for poll()

  /// Paths of files that were closed by a writer, or given their name, since the last call.
  std::set<std::string> take_finished();

 private:
  explicit DirectoryWatch(os::Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  os::Descriptor descriptor_;
  std::map<int, std::string> directories_;
};

/// Does a process on this host have the file open for writing? Unset: that cannot be told here.
std::optional<bool> is_being_written(const std::string& path);

}  // namespace belay::files
