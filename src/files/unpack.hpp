// SPDX-License-Identifier: Apache-2.0
// Unpacking: the files of a version, byte for byte as they were.
#pragma once

#include <belay/result.hpp>

#include "files/contents.hpp"
#include "inspect/store_view.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace belay::files {

struct UnpackRequest {
  std::string directory;
  bool force = false;  ///< replace files that are there
};

struct UnpackFailure {
  std::string path;
  Error error;
};

struct UnpackReport {
  std::uint64_t files = 0;  ///< written and verified
  std::uint64_t bytes = 0;
  std::vector<UnpackFailure> failures;
};

using UnpackProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// The table of a version. invalid_argument: it is not one of a packed set.
Result<Contents> read_contents(const inspect::StoreView& view, const inspect::VersionView& version);

/// Writes all files that can be had: what is wrong with one keeps no other back. Fails only if
/// nothing can be done at all: no table, or no directory.
Result<UnpackReport> unpack(const inspect::StoreView& view, const inspect::VersionView& version,
                            const UnpackRequest& request, const UnpackProgress& progress);

}  // namespace belay::files
