// SPDX-License-Identifier: Apache-2.0
// A file of the user's, opened to be read. Whatever others do to it meanwhile gives errors, not
// signals.
#pragma once

#include <belay/result.hpp>

#include "format/checksum.hpp"
#include "os/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace belay::files {

using Digest = format::Checksum128::Value;
/// Gets bytes in pieces, one after the other.
using TakeBytes = std::function<Result<void>(std::span<const std::byte>)>;

/// What tells whether a file was touched.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::uint32_t mode = 0;  ///< the permission bits
  std::int64_t mtime_ns = 0;
  std::int64_t atime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;

  /// The same file with the same content, as far as its times tell.
  bool same_content(const FileStamp& other) const {
    return bytes == other.bytes && mtime_ns == other.mtime_ns && ctime_ns == other.ctime_ns &&
           device == other.device && inode == other.inode;
  }
};

class SourceBytes {
 public:
  /// invalid_argument if it is no regular file. Symbolic links are followed.
  static Result<SourceBytes> open(const std::string& path);

  const std::string& path() const { return path_; }
  const FileStamp& stamp() const { return stamp_; }  ///< when it was opened
  int descriptor() const { return descriptor_.number(); }

  /// busy if the file has become too short: it is being written.
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) const;
  Result<FileStamp> stamp_now() const;
  /// Of the whole content.
  Result<Digest> digest() const;

 private:
  SourceBytes(std::string path, os::Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  os::Descriptor descriptor_;
  FileStamp stamp_;
};

/// busy: somebody writes the file.
Error changed_meanwhile(const std::string& path);

/// The digest of the first `bytes` bytes behind a descriptor; not_found if there are fewer.
Result<Digest> digest_of(int descriptor, std::uint64_t bytes, const std::string& path);

}  // namespace belay::files
