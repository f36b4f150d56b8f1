// SPDX-License-Identifier: Apache-2.0
// Reads and verifies every byte of a store, and says for each damage what it costs: which version,
// rank and region. Takes no lock.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace belay::inspect {

/// A file that no version needs: nothing is wrong with its being there.
struct Leftover {
  std::size_t node = 0;
  std::string file;
  std::uint64_t bytes = 0;
  bool temporary = false;
};

struct CheckedVersion {
  VersionKey key;
  VersionState state = VersionState::whole;
};

struct CheckReport {
  std::vector<Flaw> flaws;
  std::vector<CheckedVersion> versions;  ///< newest first
  /// Segments that are gone while other files have what versions need of them, and shards that are:
  /// nothing is lost, but fewer losses can be survived.
  std::vector<Flaw> replaced;
  std::vector<Leftover> leftovers;
  std::uint64_t files = 0;   ///< read and verified
  std::uint64_t bytes = 0;   ///< of those files
  std::uint64_t blocks = 0;  ///< fingerprints compared

  const CheckedVersion* newest_whole() const;
};

using CheckProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

/// Flaws are in the report; an error is returned only where checking itself failed. Versions that a
/// running job removes meanwhile are left out.
Result<CheckReport> check_store(const StoreView& view, unsigned threads,
                                const CheckProgress& progress);

}  // namespace belay::inspect
