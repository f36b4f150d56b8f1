// SPDX-License-Identifier: Apache-2.0
// Trying codecs on a sample of an extent.
#pragma once

#include "codec/codec.hpp"
#include "codec/field.hpp"

#include <cstddef>
#include <cstdint>
#include <map>

namespace belay::codec {

/// Extents smaller than this are not looked at: that would cost more than it can save.
inline constexpr std::size_t kLeastSampled = 32 << 10;

/// An extent from afar, to tell whether a later one of the variable is of the same kind.
struct Look {
  double loud = 0;  ///< the part that does not repeat what lies right before it
  double part = 0;  ///< what a codec leaves of some of that: LZ4, which is done soonest
};
/// What was left raw is looked at in another way.
Look look(const Codec& chosen, const Field& field, Workspace& workspace);
/// Whether one look can be held against the other.
bool look_alike(const Codec& a, const Codec& b);

/// What was tried, and what won.
struct Sampled {
  const Codec* best = nullptr;
  double took_s = 0;    ///< to try it, about
  double encode_s = 0;  ///< that encoding the extent should take
  double encoded_bytes = 0;
};

/// How fast this machine is.
struct Rates {
  double bytes_per_second = 200e6;  ///< of the place that encoded bytes go to
  double pace = 1;                  ///< what encoding takes, of what Appraiser says
};

/// What codecs made of extents of a variable, of what was told before: a sample shows little of
/// what repeats far apart.
using Biases = std::map<CodecId, double>;

/// The codec that would take the least time to encode the field and to write what comes of it, as
/// Appraiser tells from a sample where it is not quiet, which is larger the more bytes there were
/// of the variable since the last one (`seen_bytes`); of those that take nearly as little, the
/// smallest; raw if none of them saves enough. `former` stays if it is as good; nullptr: there is
/// none. REQUIRES: rates above 0.
Sampled sample(const Field& field, std::uint64_t seen_bytes, const Rates& rates,
               const Codec* former, const Biases& biases, Workspace& workspace);

/// The smallest of those that compress with Zstandard, on a glance: for what is too little to be
/// worth a sample.
const Codec* smallest(const Field& field, Workspace& workspace);

/// Without a sample: for extents that are too small for one.
const Codec& unsampled(double bytes_per_second);

}  // namespace belay::codec
