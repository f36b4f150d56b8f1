// SPDX-License-Identifier: Apache-2.0
// The files that a user names, and what they are called in a packed set.
#pragma once

#include <belay/result.hpp>

#include "files/file_bytes.hpp"

#include <string>
#include <vector>

namespace belay::files {

struct PackSource {
  std::string disk;   ///< where the file is
  std::string path;   ///< what the set calls it
  std::string alias;  ///< what its regions are named after: the same for the file's successors
  FileStamp stamp;    ///< when it was found
};

struct SourceList {
  std::vector<PackSource> sources;   ///< sorted by path
  std::vector<std::string> skipped;  ///< in directories: links, pipes, sockets, devices
};

/// Directories are walked. Paths are relative to `relative_to`, or if that is empty, to the deepest
/// directory that has all of them. What lies in `leave_out` is none. invalid_argument: a path leads
/// out of `relative_to`, is itself in `leave_out`, or is neither a directory nor a regular file.
Result<SourceList> find_sources(const std::vector<std::string>& paths,
                                const std::string& relative_to, const std::string& leave_out);

/// The stamp of a regular file; not_found if there is none.
Result<FileStamp> stamp_of(const std::string& path);

}  // namespace belay::files
