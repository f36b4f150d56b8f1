// SPDX-License-Identifier: Apache-2.0
#include "codec/compressor.hpp"

#include <lz4.h>

#include <algorithm>

namespace belay::codec {
namespace {

int as_int(std::size_t bytes) {
  return static_cast<int>(std::min<std::size_t>(bytes, LZ4_MAX_INPUT_SIZE));
}

}  // namespace

std::size_t Lz4::compress(std::span<const std::byte> from, std::span<std::byte> to) {
  const int bytes = LZ4_compress_fast_extState(
      workspace_.lz4_state(), reinterpret_cast<const char*>(from.data()),
      reinterpret_cast<char*>(to.data()), as_int(from.size()), as_int(to.size()), 1);
  return static_cast<std::size_t>(std::max(bytes, 0));
}

bool Lz4::decompress(std::span<const std::byte> from, std::span<std::byte> to) {
  const int bytes = LZ4_decompress_safe(reinterpret_cast<const char*>(from.data()),
                                        reinterpret_cast<char*>(to.data()), as_int(from.size()),
                                        as_int(to.size()));
  return bytes >= 0 && static_cast<std::size_t>(bytes) == to.size();
}

}  // namespace belay::codec
