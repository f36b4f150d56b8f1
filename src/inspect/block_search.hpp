// SPDX-License-Identifier: Apache-2.0
// Blocks of one version, read from whichever file has them undamaged.
#pragma once

#include <belay/result.hpp>

#include "fingerprint/hasher.hpp"
#include "inspect/block_sources.hpp"
#include "inspect/segment_outline.hpp"
#include "inspect/store_view.hpp"
#include "os/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace belay::inspect {

/// Move-only. One thread.
class BlockSearch {
 public:
  /// For the blocks that are present in the outline. Files of the same segment come first, then
  /// those of other ranks; `last`, a file that is known to be damaged, after all others.
  static Result<BlockSearch> open(const StoreView& view, const BlockSources& sources,
                                  const SegmentOutline& outline,
                                  const std::optional<BlockSource>& last);

  /// The block, verified; good until the next call. not_found if no file has it undamaged.
  Result<std::span<const std::byte>> read(const BlockName& name);
  /// A block was found in `last` only.
  bool needed_last() const { return needed_last_; }

 private:
  struct Source {
    store::SegmentFile file;
    bool last = false;
    os::AlignedMemory buffer = {};
    std::uint64_t begin = 0;  ///< of what is in the buffer
    std::size_t bytes = 0;
  };

  BlockSearch() = default;
  /// Empty: it cannot be read.
  std::span<const std::byte> read_from(Source& source, const store::StoredBlock& block);

  std::unique_ptr<fingerprint::Hasher> hasher_;
  std::vector<Source> sources_;
  bool needed_last_ = false;
};

}  // namespace belay::inspect
