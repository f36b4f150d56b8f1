// SPDX-License-Identifier: Apache-2.0
// The libraries that make bytes fewer, alike.
#pragma once

#include "codec/workspace.hpp"

#include <cstddef>
#include <span>

namespace belay::codec {

/// Made for one run of calls; holds what is set up once for all of them.
class Compressor {
 public:
  virtual ~Compressor() = default;
  /// Bytes of `to` that it filled. 0: it does not fit. REQUIRES: from is not empty.
  virtual std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) = 0;
  /// The same, by how often each byte is there, without a search for what is there again. 0, too,
  /// if it has no such way.
  virtual std::size_t compress_symbols(std::span<const std::byte>, std::span<std::byte>) {
    return 0;
  }
  /// Fills all of `to`; false: `from` is not what these make of so many bytes.
  virtual bool decompress(std::span<const std::byte> from, std::span<std::byte> to) = 0;
};

/// Blocks of LZ4. REQUIRES: at most 1 GiB at a time.
class Lz4 : public Compressor {
 public:
  explicit Lz4(Workspace& workspace) : workspace_(workspace) {}
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override;
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override;

 private:
  Workspace& workspace_;
};

/// Frames of Zstandard: one for each call, with the content's size, without checksum.
class Zstd : public Compressor {
 public:
  enum class Effort {
    fast,
    far,  ///< with a window as large as what it gets, up to 128 MiB
  };
  Zstd(Workspace& workspace, Effort effort) : workspace_(workspace), effort_(effort) {}
  std::size_t compress(std::span<const std::byte> from, std::span<std::byte> to) override;
  std::size_t compress_symbols(std::span<const std::byte> from, std::span<std::byte> to) override;
  bool decompress(std::span<const std::byte> from, std::span<std::byte> to) override;

 private:
  void prepare(std::size_t bytes);
  std::size_t frame(std::span<const std::byte> from, std::span<std::byte> to);

  Workspace& workspace_;
  const Effort effort_;
  ZSTD_CCtx_s* encoder_ = nullptr;
  bool searches_ = true;
};

}  // namespace belay::codec
