// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.hpp"
#include "codec/plane_codec.hpp"
#include "codec/whole_codecs.hpp"

#include <array>

namespace belay::codec {

using Form = PlaneCodec::Form;

std::span<const Codec* const> all_codecs() {
  static const RawCodec raw;
  static const PlaneCodec lz4(CodecId::lz4, "lz4", Transform::none, Form::lz4_planes);
  static const PlaneCodec shuffle_lz4(CodecId::shuffle_lz4, "shuffle-lz4", Transform::shuffle,
                                      Form::lz4_planes);
  static const PlaneCodec shuffle_zstd(CodecId::shuffle_zstd, "shuffle-zstd", Transform::shuffle,
                                       Form::zstd_planes);
  static const PlaneCodec delta1_zstd(CodecId::delta1_zstd, "delta1-zstd", Transform::delta1,
                                      Form::zstd_planes);
  static const PlaneCodec delta2_zstd(CodecId::delta2_zstd, "delta2-zstd", Transform::delta2,
                                      Form::zstd_planes);
  static const PlaneCodec lorenzo_zstd(CodecId::lorenzo_zstd, "lorenzo-zstd", Transform::lorenzo,
                                       Form::zstd_planes);
  static const ZstdLongCodec zstd_long;
  static const PlaneCodec delta3_zstd(CodecId::delta3_zstd, "delta3-zstd", Transform::delta3,
                                      Form::zstd_planes);
  static const PlaneCodec delta1_bits(CodecId::delta1_bits, "delta1-bits", Transform::delta1,
                                      Form::zstd_leads);
  static const PlaneCodec delta2_bits(CodecId::delta2_bits, "delta2-bits", Transform::delta2,
                                      Form::zstd_leads);
  static const PlaneCodec delta3_bits(CodecId::delta3_bits, "delta3-bits", Transform::delta3,
                                      Form::zstd_leads);
  static const PlaneCodec lorenzo_bits(CodecId::lorenzo_bits, "lorenzo-bits", Transform::lorenzo,
                                       Form::zstd_leads);
  static const PlaneCodec context_bits(CodecId::context_bits, "context-bits", Transform::context,
                                       Form::zstd_leads);
  static const std::array<const Codec*, 14> codecs = {
      &raw,         &lz4,          &shuffle_lz4,  &shuffle_zstd, &delta1_zstd,
      &delta2_zstd, &lorenzo_zstd, &zstd_long,    &delta3_zstd,  &delta1_bits,
      &delta2_bits, &delta3_bits,  &lorenzo_bits, &context_bits};
  return codecs;
}

const Codec* codec_of(CodecId id) {
  for (const Codec* codec : all_codecs())
    if (codec->id() == id) return codec;
  return nullptr;
}

const Codec* codec_named(std::string_view name) {
  for (const Codec* codec : all_codecs())
    if (codec->name() == name) return codec;
  return nullptr;
}

}  // namespace belay::codec
