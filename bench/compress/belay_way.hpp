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

/// One aggregator, from the first version to the last: choices are remembered.
class BelayWay {
 public:
  /// `codec`: "auto", or one of codec_names() for all variables.
  BelayWay(std::string codec, double bytes_per_second);
  ~BelayWay();

  /// As pack() and unpack() of schemes.hpp.
  Bytes pack(std::span<const Checkpoint> ranks);
  void unpack(std::span<const std::byte> packed, std::span<Checkpoint> ranks);
  /// The same for one variable.
  Bytes pack(const MergedVariable& variable);
  void unpack(std::span<const std::byte> packed, const MergedVariable& variable);
  std::vector<Choice> choices() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::vector<std::string> codec_names();

}  // namespace belay::bench
