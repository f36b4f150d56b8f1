// SPDX-License-Identifier: Apache-2.0
// Packing: files of an application as a version of a store of one rank. Every variable that can be
// cut out of a file is a region, all other bytes of the file are one more, and one region is the
// table of contents. All else, differences to the version before, safety and retention, is a
// session's ordinary work.
#pragma once

#include <belay/options.hpp>
#include <belay/result.hpp>
#include <belay/stats.hpp>

#include "base/name_match.hpp"
#include "files/region_names.hpp"
#include "files/sources.hpp"
#include "os/files.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace belay::files {

struct PackRequest {
  std::string set;   ///< the store's directory
  std::string base;  ///< a set that the new one starts from; empty: none
  std::vector<PackSource> sources;
  std::optional<std::uint64_t> keep;     ///< versions; unset: all
  std::optional<std::string> bandwidth;  ///< of the place of the set; unset: 200 MB/s
  NameMatch match;
  std::optional<std::uint64_t> step;      ///< for the table
  os::Files* files = &os::posix_files();  ///< what the set is made of; not owned
};

/// A file of a known format that was packed as plain bytes.
struct UncutFile {
  std::string path;
  std::string reason;
};

struct PackReport {
  Version version = 0;
  std::uint64_t files = 0;
  std::uint64_t variables = 0;
  std::uint64_t raw_bytes = 0;  ///< of the files
  std::uint64_t cut_bytes = 0;  ///< of variables
  Ledger ledger;                ///< `file_bytes`: what all that became
  std::vector<UncutFile> uncut;
};

struct PackListener {
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
  std::function<void(const std::string&)> warning;
};

/// Options of the session that packs. What is not set here may come from the environment.
Options pack_options(const PackRequest& request);

/// Takes a version. busy: a file changed meanwhile, and nothing of this version can be seen. May be
/// killed by SIGBUS if a file is cut short: use PackJob (pack_job.hpp). REQUIRES: this process has
/// one thread, and the sources are sorted by path.
Result<PackReport> pack(const PackRequest& request, const PackListener& listener);

}  // namespace belay::files
