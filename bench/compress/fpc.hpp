// SPDX-License-Identifier: Apache-2.0
// FPC, after Burtscher and Ratanaworabhan, "FPC: A High-Speed Compressor for Double-Precision
// Floating-Point Data" (2009): two predictors of the next number look it up in tables by a hash of
// the numbers before it; what is kept is which one came closer, and the bytes in which it erred.
#pragma once

#include "measure/saved_region.hpp"

#include <span>

namespace belay::bench {

/// 64-bit words, and up to seven bytes after them, which are kept as they are. The tables have
/// 2^table_bits entries each.
Bytes fpc_encode(std::span<const std::byte> raw, unsigned table_bits);
/// Ends the program if the bytes are not what fpc_encode() makes of raw.size() bytes.
void fpc_decode(std::span<const std::byte> encoded, std::span<std::byte> raw, unsigned table_bits);

}  // namespace belay::bench
