// SPDX-License-Identifier: Apache-2.0
// The codecs that take an extent apart, into planes of bytes or leads and bits, and compress what
// can be.
#pragma once

#include "codec/codec.hpp"
#include "codec/payload_layout.hpp"

namespace belay::codec {

/// Encodes at most 1 GiB: of more it says that it does not fit.
class PlaneCodec : public Codec {
 public:
  enum class Form {
    lz4_planes,
    zstd_planes,
    zstd_leads,  ///< of residuals; planes where there are none
  };

  constexpr PlaneCodec(CodecId id, std::string_view name, Transform transform, Form form)
      : id_(id), name_(name), transform_(transform), form_(form) {}

  CodecId id() const override { return id_; }
  std::string_view name() const override { return name_; }
  std::optional<std::size_t> encode(const Elements& elements, std::span<const std::byte> raw,
                                    std::span<std::byte> to, Workspace& workspace) const override;
  Result<void> decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                      Workspace& workspace) const override;

 private:
  Result<void> decode_all(std::span<const std::byte> encoded, std::span<std::byte> raw,
                          Workspace& workspace) const;
  /// What quiet groups were left out of.
  Result<void> decode_kept(std::span<const std::byte> encoded, std::span<std::byte> kept,
                           Workspace& workspace) const;

  const CodecId id_;
  const std::string_view name_;
  const Transform transform_;
  const Form form_;
};

}  // namespace belay::codec
