// SPDX-License-Identifier: Apache-2.0
// Trying codecs on a sample of an extent.
#pragma once

#include "codec/codec.hpp"
#include "os/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// Extents smaller than this are not sampled: trying would cost more than it can save.
inline constexpr std::size_t kLeastSampled = 32 << 10;

/// What was tried, and what won.
struct Sampled {
  const Codec* best = nullptr;
  std::size_t bytes = 0;  ///< of the sample
  double glance = 0;      ///< of what won
};

/// The codec that takes the least time to encode a sample of `raw` and to write what comes of it;
/// of those that take nearly as little, the smallest, and raw if that is one of them. `former`
/// stays unless another is faster or smaller by a few per cent; nullptr: there is none. REQUIRES:
/// bytes_per_second > 0, raw is not empty.
Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock);

/// Encoded bytes for each raw one, of a small part of `raw`: if it is not what it was when the
/// codec won, another may be better. What raw leaves as it is is looked at by another codec.
/// REQUIRES: raw is not empty.
double glance(const Codec& codec, const Elements& elements, std::span<const std::byte> raw,
              Workspace& workspace);

/// Without a sample: for extents that are too small for one.
const Codec& unsampled(double bytes_per_second);

}  // namespace belay::codec
