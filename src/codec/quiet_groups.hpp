// SPDX-License-Identifier: Apache-2.0
// Leaving out what only repeats: most of a field at rest. docs/format.md, "Quiet groups".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// A group is quiet if each of its bytes is the one `step` bytes before it.
class QuietGroups {
 public:
  static constexpr std::size_t kGroupBytes = 64;
  static constexpr std::size_t kMostStep = kGroupBytes;

  /// REQUIRES: step is 1 to kMostStep.
  QuietGroups(std::size_t step, std::size_t raw_bytes)
      : step_(step), groups_(raw_bytes / kGroupBytes), rest_(raw_bytes % kGroupBytes) {}

  /// A bit for each group, lowest first: whether it is kept.
  std::size_t map_bytes() const { return (groups_ + 7) / 8; }

  /// Whether enough groups of some all over `raw` are quiet to be worth it.
  bool are_many(std::span<const std::byte> raw) const;
  /// Copies what is not quiet to the front of `kept`, and says how much it is.
  /// REQUIRES: `kept` is as large as `raw` and a group more, `map` has map_bytes().
  std::size_t split(std::span<const std::byte> raw, std::span<std::byte> kept,
                    std::span<std::byte> map) const;
  /// The inverse; false: `kept` is not what the map says.
  bool join(std::span<const std::byte> kept, std::span<const std::byte> map,
            std::span<std::byte> raw) const;

  /// REQUIRES: it is not the first group of `raw`.
  bool is_quiet(const std::byte* group) const;

 private:
  /// Writes one after what is before it.
  void repeat(std::byte* group) const;

  const std::size_t step_;
  const std::size_t groups_;
  const std::size_t rest_;
};

}  // namespace belay::codec
