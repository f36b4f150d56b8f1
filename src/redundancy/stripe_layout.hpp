// SPDX-License-Identifier: Apache-2.0
// Which nodes form a set, and which bytes of a stripe lie where. Pure functions of numbers that all
// ranks know: every rank computes the same.
#pragma once

#include "redundancy/erasure_code.hpp"

#include "base/node_sets.hpp"
#include "base/stripe.hpp"

#include <belay/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::redundancy {

/// invalid_argument if the scheme is wrong, or there are fewer than k + m nodes.
Result<NodeSets> form_sets(std::uint32_t nodes, const ErasureScheme& scheme);

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return offset + length; }
  bool operator==(const Range&) const = default;
};

/// One file of a stripe: the member of the node at `place`, or one of the shards that it keeps.
struct StripePart {
  static constexpr std::uint32_t kMember = ~std::uint32_t{0};

  std::uint32_t place = 0;
  std::uint32_t shard = kMember;  ///< 0 to m - 1

  bool is_member() const { return shard == kMember; }
  bool operator==(const StripePart&) const = default;
};

/// "the member of node 3", "shard 1 of node 3": by its place in the set.
std::string name_of(const StripePart& part);

/// A stripe of one set of n nodes: one member from each (of length 0 where a node has none), and m
/// shards on each. It has n codewords. Codeword t is made of members of the nodes t, ..., t + k -
/// 1, and has its shards on t + k, ..., t + k + m - 1 (mod n). Each member is cut into k chunks of
/// one length, a multiple of kChunkUnit, the last ones shorter or empty; its chunk j is at position
/// j of codeword (place - j mod n). So each node gives to k codewords and keeps shards of m others,
/// and any m nodes may be lost.
///
/// Within a codeword chunks count as zeros beyond their end, and shards are as long as its longest
/// chunk. Where a member is cut depends on its own length only.
class StripeLayout {
 public:
  static constexpr std::uint64_t kChunkUnit = 64;
  static constexpr std::uint64_t kMaxMemberBytes = std::uint64_t{1} << 60;

  /// One length for each place. invalid_argument if the scheme is wrong, there are fewer than k + m
  /// lengths, or one is above kMaxMemberBytes.
  static Result<StripeLayout> make(const ErasureScheme& scheme,
                                   std::vector<std::uint64_t> member_bytes);

  const ErasureScheme& scheme() const { return scheme_; }
  /// The nodes of the set, which is also the number of codewords.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(member_bytes_.size()); }

  /// What is at a position of a codeword: of which part, and which bytes of it.
  StripePart part_at(std::uint32_t codeword, std::uint32_t position) const;
  Range range_at(std::uint32_t codeword, std::uint32_t position) const;
  /// The length of every shard of a codeword.
  std::uint64_t shard_bytes(std::uint32_t codeword) const;
  /// The length of a part: of a member, or of a shard.
  std::uint64_t bytes_of(const StripePart& part) const;

  /// A range of a part, and where it belongs.
  struct Piece {
    std::uint32_t codeword = 0;
    std::uint32_t position = 0;
    Range range;  ///< in the part

    bool operator==(const Piece&) const = default;
  };
  /// What the member of `place` gives to codewords, front to back, without empty chunks.
  std::vector<Piece> contributions(std::uint32_t place) const;
  /// The m shards that the node at `place` keeps, in order: shard i is at position k + i.
  std::vector<Piece> shards(std::uint32_t place) const;
  /// The piece of a member that has byte `offset`, or a shard as a whole.
  /// REQUIRES: offset < bytes_of(part).
  Piece piece_with(const StripePart& part, std::uint64_t offset) const;

 private:
  StripeLayout(const ErasureScheme& scheme, std::vector<std::uint64_t> member_bytes)
      : scheme_(scheme), member_bytes_(std::move(member_bytes)) {}
  std::uint64_t chunk_bytes(std::uint32_t place) const;
  Range chunk(std::uint32_t place, std::uint32_t index) const;
  /// The codeword in which the node at `place` has `position`.
  std::uint32_t codeword_with(std::uint32_t place, std::uint32_t position) const {
    return (place + nodes() - position) % nodes();
  }

  ErasureScheme scheme_;
  std::vector<std::uint64_t> member_bytes_;
};

/// That of a stripe: its members without their gaps.
Result<StripeLayout> layout_of(const Stripe& stripe);

}  // namespace belay::redundancy
