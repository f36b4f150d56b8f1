// SPDX-License-Identifier: Apache-2.0
// Belay's own way with a set of ranks: the same variable of all of them in extents, one rank after
// the other, each with the codec that is chosen for the variable; and each codec by itself.
#pragma once

#include "compress/schemes.hpp"

#include <memory>
#include <string>
#include <vector>

namespace belay::bench {

inline constexpr std::uint64_t kExtentBytes = 8 << 20;  ///< at most

struct Choice {
  std::string variable;
  std::string codec;
  unsigned samplings = 0;
};

/// Buffers and contexts of codecs. Ways that share them, one after the other, are measured as in a
/// process that has written before: what the kernel takes for new pages is not the codecs'.
class BelayMemory;
std::shared_ptr<BelayMemory> make_belay_memory();

/// One aggregator, from the first version to the last: choices are remembered.
class BelayWay {
 public:
  /// `codec`: "auto", or one of codec_names() for all variables.
  BelayWay(std::string codec, double bytes_per_second,
           std::shared_ptr<BelayMemory> memory = make_belay_memory());
  ~BelayWay();

  /// As pack() and unpack() of schemes.hpp; what is packed lies in the memory until the next time.
  std::span<const std::byte> pack(std::span<const Checkpoint> ranks);
  void unpack(std::span<const std::byte> packed, std::span<Checkpoint> ranks);
  /// The same for one variable.
  std::span<const std::byte> pack(const MergedVariable& variable);
  void unpack(std::span<const std::byte> packed, const MergedVariable& variable);
  std::vector<Choice> choices() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::vector<std::string> codec_names();

}  // namespace belay::bench
