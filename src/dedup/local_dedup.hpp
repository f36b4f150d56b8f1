// SPDX-License-Identifier: Apache-2.0
// Local dedup: is a block's content already in the last existing version, or in the version that is
// being captured?
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace belay::dedup {

/// An index of block fingerprints: about 5 bytes a block, since slots hold only positions in the
/// two manifests. It never says that an absent block is there; when it is full it forgets the older
/// version's blocks, which costs space in the store and nothing else.
class LocalDedup {
 public:
  struct Found {
    bool in_current = false;  ///< else in the older version
    std::uint64_t block = 0;
  };

  /// Indexes every block of `older` and forgets everything else. The manifest must outlive this.
  void index(const Manifest& older);
  /// From now on blocks are added to `current`, which must outlive this; its arrays may grow.
  /// `blocks` of them are expected.
  void start(const Manifest& current, std::size_t blocks = 0);

  /// A block with this content and length, if it is known.
  std::optional<Found> find(const Fingerprint& fingerprint, std::uint32_t length) const;
  /// Block `block` of the current manifest is the one to refer to for its content from now on.
  void add(std::uint64_t block);

  /// For each segment of the older version, the bytes of the distinct blocks that it holds.
  const std::vector<std::uint64_t>& live_bytes() const { return live_bytes_; }
  std::size_t memory_bytes() const { return slots_.capacity() * sizeof(slots_[0]); }

 private:
  std::size_t home(const Fingerprint& fingerprint) const;
  const Fingerprint& fingerprint_of(std::uint32_t slot) const;
  std::uint32_t length_of(std::uint32_t slot) const;
  /// The slot with this content, or the empty one where it belongs.
  std::size_t place_of(const Fingerprint& fingerprint, std::uint32_t length) const;
  void count_again(std::uint64_t block, std::uint32_t length, std::uint32_t first);
  void resize(std::size_t blocks);
  void make_room();

  const Manifest* older_ = nullptr;
  const Manifest* current_ = nullptr;
  std::vector<std::uint32_t> slots_;  ///< 0: empty; else block + 1, highest bit set: of the current
  std::size_t used_ = 0;
  std::vector<std::uint64_t> live_bytes_;
  std::vector<Fingerprint> last_counted_;  ///< by segment: content that index() counted again
  mutable std::size_t last_region_ = 0;
};

inline constexpr std::uint64_t kMaxBlocks = (std::uint64_t{1} << 31) - 2;  ///< of one rank

}  // namespace belay::dedup
