// SPDX-License-Identifier: Apache-2.0
// The index of a segment for who must not hold all of it: verified as it goes by, and then read
// again in parts.
#pragma once

#include <belay/result.hpp>

#include "format/checksum.hpp"
#include "format/segment.hpp"
#include "format/segment_check.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace belay::format {

inline constexpr std::size_t kIndexExtentBytes = 40;
inline constexpr std::size_t kIndexEntryBytes = 20;

/// Where an entry is in the file.
inline std::uint64_t index_entry_offset(const SegmentFooter& footer, std::uint64_t entry) {
  return footer.index_offset + kIndexExtentBytes * footer.extents + kIndexEntryBytes * entry;
}

/// `bytes` are whole entries.
void take_index_entries(std::span<const std::byte> bytes,
                        const std::function<void(const IndexEntry&)>& take);

/// Takes an index front to back. What its pieces say may be believed after finish().
class IndexCheck {
 public:
  /// Both must outlive it.
  IndexCheck(const SegmentFooter& footer, const SegmentHeader& header)
      : footer_(footer), header_(header) {}

  /// First, and once: the bytes of all extents.
  Result<void> take_extents(std::span<const std::byte> bytes);
  const std::vector<Extent>& extents() const { return extents_; }
  std::vector<Extent> release_extents() { return std::move(extents_); }
  /// Then whole entries, any number at a time.
  Result<void> take_entries(std::span<const std::byte> bytes,
                            const std::function<void(const IndexEntry&)>& take);
  /// At last all that comes between them and the footer.
  Result<void> finish(std::span<const std::byte> padding);

 private:
  const SegmentFooter& footer_;
  const SegmentHeader& header_;
  Checksum64 checksum_;
  std::vector<Extent> extents_;
  std::optional<EntryChecker> checker_;
};

}  // namespace belay::format
