// SPDX-License-Identifier: Apache-2.0
// Reading blocks of segments into their places: large reads in the background, verification and
// copying in the foreground.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "session/equipment.hpp"
#include "store/segment_file.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace belay::session {

struct WantedBlock {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  std::uint32_t fits = 0;  ///< bytes of it that go to `to`
  std::byte* to = nullptr;
  const RegionRecord* region = nullptr;  ///< for messages
};

/// Blocks that could not be read, and why the first of them.
struct UnreadBlocks {
  std::vector<WantedBlock> blocks;
  std::optional<Error> reason;

  void add(const WantedBlock& block, Error why) {
    blocks.push_back(block);
    if (!reason) reason = std::move(why);
  }
};

/// `wanted` and `unread` have an entry for each segment of the manifest. Every block is verified by
/// its fingerprint before it is copied. Those that are missing or damaged, or whose segment has no
/// file, are added to `unread`; an error means that reading itself was not possible.
Result<void> read_blocks(Equipment& equipment, os::Parallel& readers, const Manifest& manifest,
                         const std::vector<std::vector<WantedBlock>>& wanted,
                         std::vector<UnreadBlocks>& unread);

/// The same for any file: takes the blocks that it has out of `wanted`, and adds those that it gave
/// wrong bytes for to `damaged`.
Result<void> read_present(Equipment& equipment, os::Parallel& readers, store::SegmentFile file,
                          std::vector<WantedBlock>& wanted, UnreadBlocks& damaged);

}  // namespace belay::session
