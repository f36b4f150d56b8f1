// SPDX-License-Identifier: Apache-2.0
// Local dedup: is a block's content already in the last existing version, or in the version that is
// being captured?
#pragma once

#include "base/nouns.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace belay::dedup {

/// An index of block fingerprints: about 5 bytes a block, since slots hold only positions in the
/// two manifests. It never says that an absent block is there; when it is full it forgets the older
/// version's blocks, which costs space in the store and nothing else.
///
/// The current version may be written *in place*, over the block table of the older one, front to
/// back. Up to the last block passed() the table is then the current version's, beyond it the older
/// one's; older blocks that are overwritten are remembered here if displace() is told before.
class LocalDedup {
 public:
  struct Found {
    bool in_current = false;  ///< else in the older version
    std::uint64_t block = 0;
    std::uint8_t holder = 0;  ///< in the segments of that version
  };

  /// Indexes every block of `older` and forgets everything else. The manifest must outlive this.
  void index(const Manifest& older);
  /// From now on blocks are added to `current`, which must outlive this; its arrays may grow.
  /// `blocks` of them are expected. `in_place`: its table is that of the older version.
  void start(const Manifest& current, std::size_t blocks = 0, bool in_place = false);
  /// The older version has its table back; blocks that were passed are the current version's still.
  void separate() { in_place_ = false; }

  /// A block with this content and length, if it is known.
  std::optional<Found> find(const Fingerprint& fingerprint, std::uint32_t length) const;
  /// Block `block` of the current manifest is the one to refer to for its content from now on.
  void add(std::uint64_t block);
  /// In place: block `block` of the older version is about to be overwritten with other content.
  void displace(std::uint64_t block);
  /// In place: block `block` of the table is the current version's from now on, as all before it.
  void passed(std::uint64_t block) { passed_ = block + 1; }

  /// For each segment of the older version, the bytes of the distinct blocks that it holds.
  const std::vector<std::uint64_t>& live_bytes() const { return live_bytes_; }
  std::size_t memory_bytes() const;

 private:
  struct Displaced {
    Fingerprint fingerprint;
    std::uint32_t block = 0;
    std::uint8_t holder = 0;
  };

  std::size_t home(const Fingerprint& fingerprint) const;
  bool is_current(std::uint32_t slot) const;
  std::uint64_t block_of(std::uint32_t slot) const;
  const Fingerprint& fingerprint_of(std::uint32_t slot) const;
  std::uint32_t length_of(std::uint32_t slot) const;
  /// The slot with this content, or the empty one where it belongs.
  std::size_t place_of(const Fingerprint& fingerprint, std::uint32_t length) const;
  void count_again(std::uint64_t block, std::uint32_t length, std::uint32_t first);
  void resize(std::size_t blocks);
  void make_room();

  const Manifest* older_ = nullptr;
  const Manifest* current_ = nullptr;
  std::size_t older_blocks_ = 0;
  bool in_place_ = false;
  std::uint64_t passed_ = 0;          ///< older blocks before this one are the current version's
  std::vector<std::uint32_t> slots_;  ///< 0: empty; else block + 1 or displaced + 1, with a mark
  std::deque<Displaced> displaced_;
  std::size_t used_ = 0;
  std::vector<std::uint64_t> live_bytes_;
  std::vector<Fingerprint> last_counted_;  ///< by segment: content that index() counted again
  mutable std::size_t last_region_ = 0;
};

inline constexpr std::uint64_t kMaxBlocks = (std::uint64_t{1} << 30) - 2;  ///< of one rank

}  // namespace belay::dedup
