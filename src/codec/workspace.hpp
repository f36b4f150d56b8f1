// SPDX-License-Identifier: Apache-2.0
// What codecs need while they work and would rather not make anew for every extent.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace belay::codec {

/// Used by one thread at a time, for any codec and any order of calls. Starts empty, and keeps the
/// most that was needed. All throw std::bad_alloc.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;

  /// As new: without parameters. Two, since one would give back its memory between extents that
  /// need much and others that need little.
  ZSTD_CCtx_s* zstd_encoder();
  ZSTD_CCtx_s* zstd_far_encoder();
  ZSTD_DCtx_s* zstd_decoder();
  std::byte* lz4_state();

  /// Bytes aligned to a cache line, with what others left in them; until the next call.
  std::span<std::byte> scratch(std::size_t bytes) { return scratch_.of(bytes); }
  /// The same, of memory that scratch() leaves alone: for what is kept of an extent.
  std::span<std::byte> kept(std::size_t bytes) { return kept_.of(bytes); }
  /// And for what a transform remembers.
  std::span<std::byte> table(std::size_t bytes) { return table_.of(bytes); }
  /// And two more, which codecs leave alone: for a part of an extent, and what codecs make of it.
  std::span<std::byte> sample(std::size_t bytes) { return sample_.of(bytes); }
  std::span<std::byte> trial(std::size_t bytes) { return trial_.of(bytes); }

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
    void operator()(ZSTD_DCtx_s* context) const;
    void operator()(std::byte* memory) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  static Memory aligned(std::size_t bytes);
  struct Room {
    Memory memory;
    std::size_t bytes = 0;
    std::span<std::byte> of(std::size_t needed);
  };

  using Encoder = std::unique_ptr<ZSTD_CCtx_s, Free>;
  static ZSTD_CCtx_s* as_new(Encoder& encoder);

  Encoder encoder_;
  Encoder far_encoder_;
  std::unique_ptr<ZSTD_DCtx_s, Free> decoder_;
  Memory lz4_;
  Room scratch_;
  Room kept_;
  Room table_;
  Room sample_;
  Room trial_;
};

}  // namespace belay::codec
