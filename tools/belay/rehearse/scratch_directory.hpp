// SPDX-License-Identifier: Apache-2.0
// A directory for a while.
#pragma once

#include <belay/result.hpp>

#include <memory>
#include <string>

namespace belay::tool {

/// Removed with all its contents when it is destroyed, unless keep() was called.
class ScratchDirectory {
 public:
  /// `parent`/`prefix`XXXXXX, for this user only. not_found if there is no such parent.
  static Result<std::unique_ptr<ScratchDirectory>> make(const std::string& parent,
                                                        const std::string& prefix);
  explicit ScratchDirectory(std::string path) : path_(std::move(path)) {}
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  void keep() { keep_ = true; }
  const std::string& path() const { return path_; }  ///< canonical

 private:
  std::string path_;
  bool keep_ = false;
};

}  // namespace belay::tool
