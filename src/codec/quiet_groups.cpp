// SPDX-License-Identifier: Apache-2.0
#include "codec/quiet_groups.hpp"

#include <algorithm>
#include <cstring>

namespace belay::codec {
namespace {

constexpr std::size_t kLooks = 256;
/// Of all groups, below which leaving them out is not worth the copy of the others.
constexpr double kMany = 0.2;

bool is_set(std::span<const std::byte> map, std::size_t bit) {
  return (std::to_integer<unsigned>(map[bit / 8]) >> (bit % 8) & 1u) != 0;
}

}  // namespace

bool QuietGroups::is_quiet(const std::byte* group) const {
  return std::memcmp(group, group - step_, kGroupBytes) == 0;
}

bool QuietGroups::are_many(std::span<const std::byte> raw) const {
  if (groups_ <= kLooks) return false;
  const auto place = [&](std::size_t i) {
    return raw.data() + (1 + i * (groups_ - 1) / kLooks) * kGroupBytes;
  };
  // All at once: one after the other would wait for memory each time.
  for (std::size_t i = 0; i < kLooks; ++i) __builtin_prefetch(place(i));
  std::size_t quiet = 0;
  for (std::size_t i = 0; i < kLooks; ++i)
    if (is_quiet(place(i))) ++quiet;
  return static_cast<double>(quiet) > kMany * kLooks;
}

std::size_t QuietGroups::split(std::span<const std::byte> raw, std::span<std::byte> kept,
                               std::span<std::byte> map) const {
  std::fill(map.begin(), map.end(), std::byte{});
  std::byte* out = kept.data();
  for (std::size_t g = 0; g < groups_; ++g) {
    const std::byte* const group = raw.data() + g * kGroupBytes;
    const bool keep = g == 0 || !is_quiet(group);
    // Without a branch, which would often be guessed wrongly.
    std::memcpy(out, group, kGroupBytes);
    out += keep ? kGroupBytes : 0;
    map[g / 8] |= static_cast<std::byte>(static_cast<unsigned>(keep) << (g % 8));
  }
  if (rest_ > 0) std::memcpy(out, raw.data() + groups_ * kGroupBytes, rest_);
  return static_cast<std::size_t>(out - kept.data()) + rest_;
}

void QuietGroups::repeat(std::byte* group) const {
  std::byte pattern[2 * kGroupBytes];
  std::memcpy(pattern, group - step_, step_);
  for (std::size_t done = step_; done < kGroupBytes; done *= 2)
    std::memcpy(pattern + done, pattern, done);
  std::memcpy(group, pattern, kGroupBytes);
}

bool QuietGroups::join(std::span<const std::byte> kept, std::span<const std::byte> map,
                       std::span<std::byte> raw) const {
  if (groups_ > 0 && !is_set(map, 0)) return false;
  for (std::size_t g = 0; g < groups_; ++g) {
    std::byte* const group = raw.data() + g * kGroupBytes;
    if (!is_set(map, g)) {
      repeat(group);
      continue;
    }
    if (kept.size() < kGroupBytes) return false;
    std::memcpy(group, kept.data(), kGroupBytes);
    kept = kept.subspan(kGroupBytes);
  }
  if (kept.size() != rest_) return false;
  if (rest_ > 0) std::memcpy(raw.data() + groups_ * kGroupBytes, kept.data(), rest_);
  return true;
}

}  // namespace belay::codec
