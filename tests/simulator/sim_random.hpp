// SPDX-License-Identifier: Apache-2.0
// Random numbers that a seed repeats, the same on every machine.
#pragma once

#include "os/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::simulator {

/// One step of splitmix64: turns any number into a well mixed one.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The seed of part `part` of what `seed` stands for.
constexpr std::uint64_t sub_seed(std::uint64_t seed, std::uint64_t part) {
  return mix(mix(seed) ^ mix(part + 0x5851f42d4c957f2d));
}

/// splitmix64. Not locked: in the simulator only one thread runs at a time.
class SimRandom final : public os::Random {
 public:
  explicit SimRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() override {
    const std::uint64_t result = mix(state_);
    state_ += 0x9e3779b97f4a7c15;
    return result;
  }
  /// Uniform in [0, bound). REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Uniform in [low, high].
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  /// True in one of `n` cases.
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& pick(std::span<const T> choices) {
    return choices[below(choices.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace belay::simulator
