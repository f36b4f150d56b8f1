// SPDX-License-Identifier: Apache-2.0
#include "dedup/exchange_plan.hpp"

#include "base/try.hpp"

namespace belay::dedup {

Stream plan_stream(std::span<const std::uint64_t> bytes_from, const Ring& ring, Rank rank) {
  Stream stream{.offsets = std::vector<std::uint64_t>(bytes_from.size())};
  const std::size_t place = ring.place_of(rank);
  for (std::size_t back = 1; back < ring.size(); ++back) {
    const Rank sender = ring.rank_at((place + ring.size() - back) % ring.size());
    stream.offsets[sender] = stream.bytes;
    stream.bytes += bytes_from[sender];
  }
  return stream;
}

Result<Rounds> Rounds::make(std::uint64_t window_bytes, std::uint64_t max_block_bytes) {
  if (max_block_bytes < 1 || window_bytes < max_block_bytes)
    return fail(Code::invalid_argument,
                "staging: a window of {} bytes cannot hold a block of {} (raise staging, or lower "
                "block)",
                window_bytes, max_block_bytes);
  // A block that begins in the last byte of the stride still ends within the window.
  return Rounds(window_bytes, window_bytes - max_block_bytes + 1);
}

std::vector<Put> plan_puts(std::uint64_t offset, std::span<const std::uint32_t> lengths,
                           const Rounds& rounds) {
  std::vector<Put> puts;
  for (std::size_t block = 0; block < lengths.size(); ++block) {
    const std::uint64_t round = offset / rounds.stride();
    if (puts.empty() || puts.back().round != round)
      puts.push_back({.round = round, .offset = offset % rounds.stride(), .first_block = block});
    puts.back().bytes += lengths[block];
    ++puts.back().blocks;
    offset += lengths[block];
  }
  return puts;
}

}  // namespace belay::dedup
