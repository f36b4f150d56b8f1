// SPDX-License-Identifier: Apache-2.0
// The four ways of Islam et al., "McrEngine" (SC 2012), section 3.2, to make one file of the
// checkpoints of a set of ranks, and back.
#pragma once

#include "compress/passes.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::bench {

enum class Merging {
  agnostic,        ///< one checkpoint after the other
  agnostic_block,  ///< a block of each in turn
  aware,           ///< variable after variable, each one rank after the other
  aware_block,     ///< variable after variable, each a block of every rank in turn
};

struct Scheme {
  Merging merging = Merging::agnostic;
  std::uint64_t block_bytes = 0;  ///< of the two that have blocks
  int passes = 1;                 ///< two: gzip over everything that the first one made
  bool fpzip_for_doubles = false;

  std::string name() const;
  bool is_aware() const { return merging == Merging::aware || merging == Merging::aware_block; }
};

/// Variables below this many bytes in each rank are put together and left to the last pass.
inline constexpr std::uint64_t kSmallBytes = 100;

/// The same variable of several ranks: alike in name and type. Empty where a rank has none.
struct MergedVariable {
  std::string name;
  ElementType type;
  /// Of the ranks one after the other: their shapes agree but for the slowest extent. Else it has
  /// one dimension.
  Shape shape;
  std::vector<const Variable*> ranks;
  bool is_small = false;
};
/// In the order in which ranks have them.
std::vector<MergedVariable> match_variables(std::span<const Checkpoint> ranks);

/// What the scheme makes of it, lengths included; names and shapes, the same for all, are left out.
Bytes pack(std::span<const Checkpoint> ranks, const Scheme& scheme);
/// `ranks` has everything but the contents of its bytes. Ends the program if that does not fit.
void unpack(std::span<const std::byte> packed, const Scheme& scheme, std::span<Checkpoint> ranks);

/// A copy with zeros for contents, to unpack into.
std::vector<Checkpoint> blank(std::span<const Checkpoint> ranks);

}  // namespace belay::bench
