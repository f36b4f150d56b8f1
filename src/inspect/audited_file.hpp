// SPDX-License-Identifier: Apache-2.0
// A segment or copy that was read to its end, and what is good in it.
#pragma once

#include "inspect/block_sources.hpp"
#include "inspect/segment_audit.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace belay::inspect {

struct AuditedFile {
  BlockSource source;
  std::optional<store::SegmentFile> file;  ///< its blocks are sorted
  std::optional<Error> lost;               ///< the file as a whole: nothing in it can be trusted
  std::vector<store::StoredBlock> bad = {};
  std::set<std::uint64_t> bad_offsets = {};

  /// `file_bytes` as in store::SegmentFile::open().
  static AuditedFile read(const StoreView& view, SegmentAudit& audit, const BlockSource& source,
                          std::optional<std::uint64_t> file_bytes,
                          const SegmentAudit::Advance& advance);
  /// Unset: nothing is wrong with it, or it has gone since it was listed.
  std::optional<Flaw> damage(const StoreView& view) const;

  std::string name() const;
  bool has_good(const BlockName& name) const;
};

}  // namespace belay::inspect
