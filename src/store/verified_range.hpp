// SPDX-License-Identifier: Apache-2.0
// Any bytes of a segment, verified, for whoever rebuilds others from them.
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"
#include "store/segment_file.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace belay::store {

/// The fingerprint of a block.
using NameBlock = std::function<Fingerprint(std::span<const std::byte>)>;

/// Bytes of what the segment gives to its stripe: its file without the gap of `member`, whose rank
/// and size do not matter. corruption if there are not as many, or one of them, or of the blocks
/// that they are of, is damaged. REQUIRES: segment.sort_blocks() was not called.
Result<void> read_member(SegmentFile& segment, const StripeMember& member, const NameBlock& name,
                         std::uint64_t offset, std::span<std::byte> into);

}  // namespace belay::store
