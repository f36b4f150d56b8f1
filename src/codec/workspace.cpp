// SPDX-License-Identifier: Apache-2.0
#include "codec/workspace.hpp"

#include <lz4.h>
#include <zstd.h>

#include <new>

namespace belay::codec {
namespace {

constexpr std::align_val_t kCacheLine{64};

}  // namespace

Workspace::Workspace() = default;
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

void Workspace::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }
void Workspace::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }
void Workspace::Free::operator()(std::byte* memory) const { ::operator delete(memory, kCacheLine); }

Workspace::Memory Workspace::aligned(std::size_t bytes) {
  return Memory(static_cast<std::byte*>(::operator new(bytes, kCacheLine)));
}

ZSTD_CCtx_s* Workspace::as_new(Encoder& encoder) {
  if (!encoder) encoder.reset(ZSTD_createCCtx());
  if (!encoder || ZSTD_isError(ZSTD_CCtx_reset(encoder.get(), ZSTD_reset_session_and_parameters)))
    throw std::bad_alloc();
  return encoder.get();
}

ZSTD_CCtx_s* Workspace::zstd_encoder() { return as_new(encoder_); }
ZSTD_CCtx_s* Workspace::zstd_far_encoder() { return as_new(far_encoder_); }

ZSTD_DCtx_s* Workspace::zstd_decoder() {
  if (!decoder_) decoder_.reset(ZSTD_createDCtx());
  if (!decoder_) throw std::bad_alloc();
  return decoder_.get();
}

std::byte* Workspace::lz4_state() {
  if (!lz4_) lz4_ = aligned(static_cast<std::size_t>(LZ4_sizeofState()));
  return lz4_.get();
}

std::span<std::byte> Workspace::Room::of(std::size_t needed) {
  if (bytes < needed) {
    memory.reset();
    bytes = 0;
    memory = aligned(needed);
    bytes = needed;
  }
  return {memory.get(), needed};
}

}  // namespace belay::codec
