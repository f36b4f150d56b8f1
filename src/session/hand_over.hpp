// SPDX-License-Identifier: Apache-2.0
// What a rank and its head say to each other: an order for a version, and how it came out; and the
// same, over a line of their own, for versions that go to the global tier.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "dedup/node_layout.hpp"
#include "session/drain.hpp"
#include "session/flight.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::session {

/// The first byte of a message says what it is.
enum class Notice : std::uint8_t { join = 1, order, alive, report, leave, drain, drained };
/// What a line is for.
enum class Purpose : std::uint8_t { versions, drains };

struct Join {
  Rank rank = 0;
  Purpose purpose = Purpose::versions;
};

/// A version that a rank has captured, for its head to make durable.
struct Order {
  /// An unsafe block in the memory that both see.
  struct Piece {
    std::uint64_t at = 0;  ///< offset in the shared file
    std::uint64_t block = 0;
    std::uint32_t region = 0;
    std::uint32_t length = 0;
  };

  Manifest manifest;
  std::string directory;           ///< of the node
  std::vector<dedup::Node> nodes;  ///< by rank
  std::uint32_t copies = 1;        ///< on so many nodes every block shall be
  std::uint64_t start_ns = 0;      ///< entry of checkpoint(), by the clock of the host
  std::uint16_t own_segment = 0;
  std::vector<SegmentRef> counted_on;
  std::vector<Piece> pieces;
};

/// A version that a rank's set shall have on the global tier, for its head to bring there.
struct DrainOrder {
  // Directories, as DrainPlaces has them.
  std::vector<std::string> nodes;
  std::vector<std::string> global;
  std::vector<std::string> sight;
  DrainedVersion version;
  DrainWork work;
};

/// All return whole messages, and take them without the first byte. corruption: it is not one.
std::vector<std::byte> encode_join(const Join& join);
Result<Join> decode_join(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> encode_order(const Order& order);
Result<Order> decode_order(std::span<const std::byte> bytes);
Result<std::vector<std::byte>> encode_report(const Outcome& outcome);
Result<Outcome> decode_report(std::span<const std::byte> bytes);
std::vector<std::byte> encode_drain_order(const DrainOrder& order);
Result<DrainOrder> decode_drain_order(std::span<const std::byte> bytes);
std::vector<std::byte> encode_drain_report(const DrainReport& report);
Result<DrainReport> decode_drain_report(std::span<const std::byte> bytes);

/// What a message is; alive and leave are nothing but that. Of an empty one: alive.
std::vector<std::byte> encode_notice(Notice notice);
Notice notice_of(std::span<const std::byte> message);

}  // namespace belay::session
