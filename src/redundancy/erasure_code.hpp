// SPDX-License-Identifier: Apache-2.0
// erasure:k+m: m shards from k members, so that any k of the k + m give the others back.
#pragma once

#include "redundancy/byte_matrix.hpp"

#include <belay/result.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::redundancy {

/// k + m of `erasure:k+m`.
struct ErasureScheme {
  std::uint32_t members = 0;  ///< k
  std::uint32_t shards = 0;   ///< m

  std::uint32_t width() const { return members + shards; }
  bool operator==(const ErasureScheme&) const = default;
};

inline constexpr std::uint32_t kMaxWidth = 255;  ///< of a scheme

/// "erasure:k+m"
std::string name_of(const ErasureScheme& scheme);
/// invalid_argument unless k >= 1, m >= 1 and k + m <= kMaxWidth.
Result<void> check_scheme(const ErasureScheme& scheme);

/// A codeword has k + m positions: 0 to k - 1 are members, k + i is shard i. In GF(2^8),
///   shard i = sum over j of (k ^ j) / ((k + i) ^ j) * member j
/// (^ is XOR of the integers): a Cauchy matrix with its columns scaled so that shard 0 is the XOR
/// of all members. Every square submatrix is invertible, so any k positions give the rest. Files
/// hold such shards: the formula never changes.
///
/// All strings of a codeword may be worked on in pieces: piece by piece gives the same bytes as the
/// whole. Members that are shorter than the shards count as zeros beyond their end, without being
/// padded. Immutable: any number of threads may use one.
class ErasureCode {
 public:
  /// As check_scheme().
  static Result<ErasureCode> make(const ErasureScheme& scheme);

  const ErasureScheme& scheme() const { return scheme_; }

  /// All shards of `members`. REQUIRES: k members, m shards of one length, nothing overlaps.
  void encode(std::span<const Bytes> members, std::span<const MutableBytes> shards) const {
    encoder_.multiply(members, shards);
  }
  /// For members that arrive one after the other, in any order: shards begin as zeros, and are
  /// complete when each member was added once. REQUIRES: index < k; no shard is shorter than
  /// `member`.
  void add_member(std::size_t index, Bytes member, std::span<const MutableBytes> shards) const {
    encoder_.add(index, member, shards);
  }

  /// The matrix from the strings at positions `known`, in that order, to those at `wanted`.
  /// A single shard of k members is made in this way too: wanted {k + i}, known {0, ..., k - 1}.
  /// invalid_argument unless `known` are k different positions, and `wanted` at least one.
  Result<ByteMatrix> rebuild_matrix(std::span<const std::uint32_t> wanted,
                                    std::span<const std::uint32_t> known) const;
  /// The strings at `wanted` from those at `known`. As rebuild_matrix(); REQUIRES: survivors[i] is
  /// at known[i], rebuilt[i] at wanted[i]; else as encode().
  Result<void> rebuild(std::span<const std::uint32_t> wanted, std::span<const std::uint32_t> known,
                       std::span<const Bytes> survivors,
                       std::span<const MutableBytes> rebuilt) const;

 private:
  ErasureCode(const ErasureScheme& scheme, std::vector<std::uint8_t> coefficients);
  std::uint8_t coefficient(std::uint32_t shard, std::uint32_t member) const {
    return coefficients_[std::size_t{shard} * scheme_.members + member];
  }
  Result<void> check_positions(std::span<const std::uint32_t> wanted,
                               std::span<const std::uint32_t> known) const;
  Result<std::vector<std::uint8_t>> solve_members(std::span<const std::uint32_t> known) const;

  ErasureScheme scheme_;
  std::vector<std::uint8_t> coefficients_;  ///< m rows of k
  ByteMatrix encoder_;
};

}  // namespace belay::redundancy
