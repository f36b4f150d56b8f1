// SPDX-License-Identifier: Apache-2.0
// Compressing the moments of one run in every way. One thread, whose processor time is measured;
// every way back is compared with what went in, and a difference ends the program.
#pragma once

#include "compress/checkpoints.hpp"

#include <nlohmann/json.hpp>

#include <vector>

namespace belay::bench {

using Json = nlohmann::json;

inline constexpr double kBandwidth = 200e6;  ///< of the global tier for one writer, bytes/s

struct TrialSettings {
  std::vector<int> set_sizes;  ///< ranks that are merged
  int repetitions = 3;
  int codec_repetitions = 15;  ///< they take little
  bool quick = false;
};

/// A row for each moment, size of sets and scheme: {application, when, set, scheme, chain, ratio,
/// pack_s, unpack_s, bytes}; `chain` is paper, fpzip (for doubles too) or belay. Schemes of the
/// least size at a moment and `auto` are timed several times, in turn.
Json try_schemes(const std::vector<Moment>& moments, const TrialSettings& settings);

/// A row for each moment, variable of all ranks, and codec: {application, when, variable, type,
/// codec, bytes, encoded_bytes, encode_s, encode_turns_s, decode_s}; `type` is float, integer or
/// other.
/// `auto` is one of the codecs; it samples in the first moment, and has `chosen` as well.
Json try_codecs(const std::vector<Moment>& moments, const TrialSettings& settings);

}  // namespace belay::bench
