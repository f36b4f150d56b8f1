// SPDX-License-Identifier: Apache-2.0
// Trying codecs on a sample of an extent.
#pragma once

#include "codec/codec.hpp"
#include "os/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace belay::codec {

/// Extents smaller than this are not looked at: that would cost more than it can save.
inline constexpr std::size_t kLeastSampled = 32 << 10;

/// What was tried, and what won.
struct Sampled {
  const Codec* best = nullptr;
  std::size_t bytes = 0;  ///< of the sample
  double glance = 0;      ///< if raw won
  double loud = 0;        ///< the part of the extent that is not quiet
};

/// The codec that would take the least time to encode `raw` and to write what comes of it, judged
/// by a sample from where it is not quiet; of those that take nearly as little, the smallest; raw
/// if none of them saves enough. `former` stays unless another is better by a few per cent;
/// nullptr: there is none. REQUIRES: bytes_per_second > 0, raw is not empty.
Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock);

/// The smallest of those that compress with Zstandard, on a glance: for what is too little to be
/// worth a sample. REQUIRES: raw is not empty.
const Codec* smallest(const Elements& elements, std::span<const std::byte> raw,
                      Workspace& workspace);

/// Encoded bytes for each raw one, judged by a small part of `raw`. What raw leaves as it is is
/// looked at by another codec: if it is not what it was when raw won, another may be better.
/// REQUIRES: raw is not empty.
double glance(const Codec& codec, const Elements& elements, std::span<const std::byte> raw,
              Workspace& workspace);

/// How much of it does not repeat what lies before it, judged by some places. REQUIRES: raw is not
/// empty.
double loud_part(const Elements& elements, std::span<const std::byte> raw);

/// Without a sample: for extents that are too small for one.
const Codec& unsampled(double bytes_per_second);

}  // namespace belay::codec
