// SPDX-License-Identifier: Apache-2.0
// Files that may have a block, opened for reading: those that are there, and segments that a stripe
// gives back.
#pragma once

#include <belay/result.hpp>

#include "inspect/block_sources.hpp"
#include "store/segment_file.hpp"

#include <cstdint>
#include <optional>

namespace belay::inspect {

/// As store::SegmentFile::hold(). Of FileKind::shard: the segment as the other files of its stripe
/// tell, without natural blocks, which no stripe has, and without those that too few files are left
/// for. The view must outlive it.
Result<store::SegmentFile> hold_source(const StoreView& view, const BlockSource& source);

/// As store::SegmentFile::open().
Result<store::SegmentFile> open_source(const StoreView& view, const BlockSource& source,
                                       const StoreId& store,
                                       std::optional<std::uint64_t> file_bytes);

}  // namespace belay::inspect
