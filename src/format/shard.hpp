// SPDX-License-Identifier: Apache-2.0
// The bytes of shards: parity, then what it is the parity of. docs/format.md is the authority.
//
//   [parity][zeros][description: origin, stripe, checksums][footer 64]   size % 4096 == 0
#pragma once

#include <belay/result.hpp>

#include "base/stripe.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace belay::format {

inline constexpr std::size_t kShardFooterBytes = 64;
/// Parity is verified in units of so many bytes; the last may be short.
inline constexpr std::uint64_t kShardUnit = 64 << 10;

struct ShardDescription {
  Origin origin;  ///< its rank is 0: a shard is of no rank
  Stripe stripe;
  std::uint32_t seat = 0;   ///< of the node that keeps it
  std::uint32_t index = 0;  ///< 0 to level.shards - 1
  std::uint64_t parity_bytes = 0;
  std::vector<std::uint64_t> checksums;  ///< of each unit of the parity
  bool operator==(const ShardDescription&) const = default;
};

/// What follows the parity: the file is `parity` and this. REQUIRES: one checksum for each unit.
std::vector<std::byte> encode_shard_end(const ShardDescription& description);

struct ShardFooter {
  std::uint64_t description_offset = 0;
  std::uint64_t description_bytes = 0;
  std::uint64_t checksum = 0;  ///< of the description
};

/// `bytes` are the last kShardFooterBytes of a file of `file_bytes`.
Result<ShardFooter> decode_shard_footer(std::span<const std::byte> bytes, std::uint64_t file_bytes);
/// `bytes` are those that the footer speaks of. Everything in the result is in bounds.
Result<ShardDescription> decode_shard_description(std::span<const std::byte> bytes,
                                                  const ShardFooter& footer);

}  // namespace belay::format
