// SPDX-License-Identifier: Apache-2.0
// Reading blocks of one segment into their places: large reads in the background, verification and
// copying in the foreground.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "session/equipment.hpp"

#include <vector>

namespace belay::session {

struct WantedBlock {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  std::uint32_t fits = 0;  ///< bytes of it that go to `to`
  std::byte* to = nullptr;
  const RegionRecord* region = nullptr;  ///< for messages
};

/// Every block is verified by its fingerprint before it is copied.
Result<void> read_blocks(Equipment& equipment, os::Parallel& readers, const Manifest& manifest,
                         const SegmentRef& segment, std::vector<WantedBlock> wanted);

}  // namespace belay::session
