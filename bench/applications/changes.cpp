// SPDX-License-Identifier: Apache-2.0
#include "applications/changes.hpp"

#include <algorithm>

namespace belay::bench {

Changes compare(std::span<const std::byte> before, std::span<const std::byte> after,
                std::uint64_t block_bytes) {
  Changes changes;
  std::uint64_t run = 0;
  const auto end_run = [&] {
    if (run > 0) changes.runs.push_back(run);
    run = 0;
  };
  const auto block_at = [&](std::span<const std::byte> bytes, std::size_t offset) {
    offset = std::min(offset, bytes.size());
    return bytes.subspan(offset, std::min<std::size_t>(block_bytes, bytes.size() - offset));
  };
  for (std::size_t offset = 0; offset < after.size(); offset += block_bytes) {
    const auto old = block_at(before, offset), now = block_at(after, offset);
    if (std::equal(old.begin(), old.end(), now.begin(), now.end())) {
      end_run();
    } else {
      run += now.size();
      changes.changed_bytes += now.size();
    }
  }
  end_run();
  return changes;
}

}  // namespace belay::bench
