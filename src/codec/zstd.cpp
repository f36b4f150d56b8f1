// SPDX-License-Identifier: Apache-2.0
#include "codec/compressor.hpp"

// For ZSTD_c_literalCompressionMode, without which a frame can do. All else is stable.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>

namespace belay::codec {
namespace {

/// A table that stays in the first cache: planes of numbers have few matches to be missed, and
/// level 1 would take a larger one the larger they are.
constexpr int kFastHashLog = 13;
/// Shorter matches in planes of numbers are there by chance, and cost more than they save.
constexpr int kFastMinMatch = 7;
/// How many bytes the search skips where it finds nothing.
constexpr int kHardlyASearch = 64 << 10;
constexpr int kFarLevel = 3;
/// What is no larger has little that is far: larger tables would take longer to clear than they
/// save.
constexpr std::size_t kNear = 256 << 10;
constexpr int kLeastWindowLog = 10;  // that the library has
constexpr int kFarWindowLog = 27;

void set(ZSTD_CCtx* encoder, ZSTD_cParameter parameter, int value) {
  if (ZSTD_isError(ZSTD_CCtx_setParameter(encoder, parameter, value))) throw std::bad_alloc();
}

bool begins_a_frame(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER;
}

}  // namespace

void Zstd::prepare(std::size_t bytes) {
  const bool is_far = effort_ == Effort::far && bytes > kNear;
  encoder_ = is_far ? workspace_.zstd_far_encoder() : workspace_.zstd_encoder();
  set(encoder_, ZSTD_c_compressionLevel, is_far ? kFarLevel : 1);
  if (effort_ == Effort::far) {
    const auto log = static_cast<int>(std::bit_width(bytes));
    set(encoder_, ZSTD_c_windowLog, std::clamp(log, kLeastWindowLog, kFarWindowLog));
  } else {
    set(encoder_, ZSTD_c_hashLog, kFastHashLog);
    set(encoder_, ZSTD_c_minMatch, kFastMinMatch);
  }
}

std::size_t Zstd::frame(std::span<const std::byte> from, std::span<std::byte> to) {
  const std::size_t bytes =
      ZSTD_compress2(encoder_, to.data(), to.size(), from.data(), from.size());
  if (!ZSTD_isError(bytes)) return bytes;
  if (ZSTD_getErrorCode(bytes) == ZSTD_error_dstSize_tooSmall) return 0;
  throw std::bad_alloc();  // with valid parameters nothing else can go wrong
}

std::size_t Zstd::compress(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!encoder_) prepare(from.size());
  if (!searches_) set(encoder_, ZSTD_c_targetLength, 0);
  searches_ = true;
  return frame(from, to);
}

std::size_t Zstd::compress_symbols(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!encoder_) prepare(from.size());
  // Else the library would take who does not search for one who cannot wait for entropy coding.
  if (ZSTD_isError(ZSTD_CCtx_setParameter(encoder_, ZSTD_c_literalCompressionMode, ZSTD_ps_enable)))
    return 0;
  if (searches_) set(encoder_, ZSTD_c_targetLength, kHardlyASearch);
  searches_ = false;
  return frame(from, to);
}

bool Zstd::decompress(std::span<const std::byte> from, std::span<std::byte> to) {
  // The library would take several frames, frames to skip, and frames of its own past too.
  if (!begins_a_frame(from) ||
      ZSTD_findFrameCompressedSize(from.data(), from.size()) != from.size())
    return false;
  const std::size_t bytes = ZSTD_decompressDCtx(workspace_.zstd_decoder(), to.data(), to.size(),
                                                from.data(), from.size());
  return !ZSTD_isError(bytes) && bytes == to.size();
}

}  // namespace belay::codec
