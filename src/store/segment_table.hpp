// SPDX-License-Identifier: Apache-2.0
// The blocks of a segment, or of a copy of one, for who must not hold all that its index says: it
// is verified once, and then read in parts.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "store/pages.hpp"
#include "store/segment_file.hpp"
#include "store/segment_frame.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace belay::store {

class DecodedFile;

/// Move-only.
class SegmentTable {
 public:
  /// As SegmentFile::open().
  static Result<SegmentTable> open(Tier& tier, const SegmentId& id, const StoreId& store,
                                   FileKind kind = FileKind::segment);

  const format::SegmentHeader& header() const { return frame_.header; }
  std::uint64_t entries() const { return frame_.footer.entries; }
  /// Where the blocks are: bytes that are decoded if they have to be.
  os::File& file() const { return *file_; }

  /// An entry with its place in file(); or, of a copy, one that is not in it.
  using Take = std::function<void(const StoredBlock& block, bool present)>;
  /// Entries [first, first + count), in order. REQUIRES: there are so many.
  Result<void> read(std::uint64_t first, std::uint64_t count, PageReader& reader,
                    const Take& take) const;

 private:
  static constexpr std::uint64_t kStep = 1024;

  Result<void> load();
  /// Where an extent begins in file().
  std::uint64_t begin_of(std::size_t extent) const;

  std::string where_;
  SegmentFrame frame_;
  std::shared_ptr<os::File> stored_;  ///< as it lies on the tier
  std::shared_ptr<os::File> file_;
  DecodedFile* decoded_ = nullptr;  ///< file_, if extents have codecs
  std::vector<format::Extent> extents_;
  /// Of all blocks before an extent, and before every kStep-th entry, whether in the file or not.
  std::vector<std::uint64_t> extent_lengths_, step_lengths_;
};

}  // namespace belay::store
