// SPDX-License-Identifier: Apache-2.0
#include "session/segment_encoding.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::session {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
// A codec and an entry in the index for each of these would cost more than it saves.
constexpr std::uint64_t kSmallBytes = 100;
constexpr std::string_view kSmallVariables = "(small)";

using Regions = std::vector<std::pair<std::uint32_t, RegionRecord>>;

/// Which of the buffer's regions a block is of. Regions are in rising order.
const RegionRecord& region_of(const Regions& regions, const capture::StagedBlock& block) {
  const auto found =
      std::lower_bound(regions.begin(), regions.end(), block.region,
                       [](const auto& region, std::uint32_t at) { return region.first < at; });
  return found->second;
}

/// Does a block of `next` go into the same extent as one of `first`?
bool belong_together(const RegionRecord& first, const RegionRecord& next) {
  if (&first == &next) return true;
  if (first.bytes < kSmallBytes && next.bytes < kSmallBytes) return true;
  return first.bytes >= kSmallBytes && next.bytes >= kSmallBytes && first.type == next.type &&
         variable_of(first.name) == variable_of(next.name);
}

}  // namespace

std::string_view variable_of(std::string_view region) {
  const auto colon = region.rfind(':');
  return colon == region.npos || colon + 1 == region.size() ? region : region.substr(colon + 1);
}

Result<void> SegmentEncoding::lend_to(store::FileWriter& file) {
  BELAY_ASSIGN(memory_, os::AlignedMemory::allocate(kWriteBytes));
  file.lend(memory_.bytes());
  return {};
}

Result<void> SegmentEncoding::write(store::FileWriter& file, const capture::StagingBuffer& buffer) {
  const auto memory = buffer.memory.bytes();
  const auto& blocks = buffer.blocks;
  for (std::size_t first = 0; first < blocks.size();) {
    const RegionRecord& region = region_of(buffer.regions, blocks[first]);
    std::uint64_t bytes = 0;
    std::size_t last = first;
    while (last < blocks.size() && bytes + blocks[last].length <= store::kExtentBytes &&
           belong_together(region, region_of(buffer.regions, blocks[last])))
      bytes += blocks[last++].length;
    const bool small = region.bytes < kSmallBytes;
    BELAY_TRY(writer_.append(
        file,
        {.variable = small ? kSmallVariables : variable_of(region.name),
         .elements = small ? codec::Elements{} : codec::elements_of(region.type, region.shape),
         .bytes = memory.subspan(blocks[first].offset, bytes),
         .blocks = static_cast<std::uint32_t>(last - first)}));
    first = last;
  }
  return {};
}

}  // namespace belay::session
