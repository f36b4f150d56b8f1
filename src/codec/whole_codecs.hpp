// SPDX-License-Identifier: Apache-2.0
// The codecs that leave the bytes of an extent in their order.
#pragma once

#include "codec/codec.hpp"

namespace belay::codec {

/// As they are.
class RawCodec : public Codec {
 public:
  CodecId id() const override { return CodecId::raw; }
  std::string_view name() const override { return "raw"; }
  std::optional<std::size_t> encode(const Elements& elements, std::span<const std::byte> raw,
                                    std::span<std::byte> to, Workspace& workspace) const override;
  Result<void> decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                      Workspace& workspace) const override;
};

/// One frame of Zstandard, whose window is all of the extent.
class ZstdLongCodec : public Codec {
 public:
  CodecId id() const override { return CodecId::zstd_long; }
  std::string_view name() const override { return "zstd-long"; }
  std::optional<std::size_t> encode(const Elements& elements, std::span<const std::byte> raw,
                                    std::span<std::byte> to, Workspace& workspace) const override;
  Result<void> decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                      Workspace& workspace) const override;
};

}  // namespace belay::codec
