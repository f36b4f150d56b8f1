// SPDX-License-Identifier: Apache-2.0
// A file for the user: it appears under its name when it is complete, or not at all.
#pragma once

#include <belay/result.hpp>

#include "os/files.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace belay::tool {

/// Written under a temporary name beside the real one, mode 0600. Without finish() it is removed.
/// "-" is standard output.
class OutputFile {
 public:
  /// invalid_argument if something has this name and `force` is not set, or is no regular file.
  static Result<OutputFile> create(const std::string& path, bool force);
  OutputFile(OutputFile&&) = default;
  ~OutputFile();

  Result<void> append(std::span<const std::byte> bytes);
  Result<void> append(std::string_view text);
  Result<void> finish();
  bool is_standard() const { return file_ == nullptr; }

 private:
  OutputFile(std::string path, bool force) : path_(std::move(path)), force_(force) {}

  std::string path_;
  bool force_;
  std::string temporary_;  ///< empty: there is none
  std::unique_ptr<os::File> file_;
  std::uint64_t offset_ = 0;
};

}  // namespace belay::tool
