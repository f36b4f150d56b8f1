// SPDX-License-Identifier: Apache-2.0
// The table of contents of a packed set: which bytes of which region are which bytes of which file.
// docs/format.md, "Packed sets", has the encoding.
#pragma once

#include <belay/result.hpp>

#include "files/file_bytes.hpp"
#include "files/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::files {

/// The region that holds the table. Names of all others have a colon.
inline constexpr const char* kContentsRegion = "belay.files";
inline constexpr const char* kApplication = "belay-pack";

/// One region of a file: a variable, a part of one, or with an empty name bytes that belong to
/// none.
struct PackedRegion {
  std::string region;
  std::string variable;
  std::vector<Range> ranges;
  std::optional<ArrayType> whole = {};  ///< the variable, where the region is not simply that
};

/// A variable that has no region: its bytes are among those that belong to none.
struct SkeletonEntry {
  std::string name;  ///< as its region would be named
  std::string variable;
  ArrayType array;
  std::uint64_t bytes = 0;  ///< that it takes in the file

  bool operator==(const SkeletonEntry&) const = default;
};

struct PackedFile {
  std::string path;  ///< relative, with '/'
  std::uint64_t bytes = 0;
  std::uint32_t mode = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t atime_ns = 0;
  FileFormat format = FileFormat::other;
  Digest digest;
  std::vector<PackedRegion> regions;
  std::vector<SkeletonEntry> in_skeleton = {};  ///< none before the third format
  bool tells_arrays = true;                     ///< tables of the first format did not
};

struct Contents {
  std::optional<std::uint64_t> step;  ///< of the application, where `belay watch` knows it
  std::vector<PackedFile> files;      ///< sorted by path, each once
};

inline constexpr std::size_t kMostTableRanges = std::size_t{1} << 24;

/// REQUIRES: files are sorted, their paths pass check_path().
std::vector<std::byte> encode_contents(const Contents& contents);

/// corruption unless the paths are sorted and pass check_path(), the regions of each file are
/// exactly its bytes, each byte once, and variables have a name and make sense; unsupported of a
/// later format.
Result<Contents> decode_contents(std::span<const std::byte> bytes);

/// invalid_argument unless the path is relative, stays below where it starts, and can be a name.
Result<void> check_path(std::string_view path);

}  // namespace belay::files
