// SPDX-License-Identifier: Apache-2.0
// An input's first byte is 0: then come a codec's id, a u16 of raw bytes, and what is to be
// decoded. Anything else: an id, a description of elements, and what is to be encoded and decoded.
#include "codec/codec.hpp"
#include "codec/workspace.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>

namespace belay::fuzz {
namespace {

std::uint32_t byte_at(View bytes, std::size_t offset) {
  return std::to_integer<std::uint32_t>(bytes[offset]);
}

const codec::Codec* codec_in(View bytes) {
  return bytes.empty() ? nullptr : codec::codec_of(static_cast<CodecId>(byte_at(bytes, 0)));
}

void check_decode(const codec::Codec& codec, View rest) {
  if (rest.size() < 2) return;
  Bytes raw(byte_at(rest, 0) | byte_at(rest, 1) << 8);
  codec::Workspace workspace;
  const auto decoded = codec.decode(rest.subspan(2), raw, workspace);
  if (!decoded) require(decoded.error().code() == Code::corruption, "a refusal is corruption");
}

codec::Elements elements_in(View description) {
  codec::Elements elements;
  elements.number = static_cast<codec::Elements::Number>(byte_at(description, 0) % 3);
  elements.big_endian = byte_at(description, 0) >= 128;
  elements.bytes = byte_at(description, 1);
  elements.parts = byte_at(description, 2);
  elements.dimensions = byte_at(description, 3) % 5;
  for (std::size_t i = 0; i < elements.shape.size(); ++i)
    elements.shape[i] = byte_at(description, 4 + i);
  return elements;
}

void check_round_trip(const codec::Codec& codec, View rest) {
  constexpr std::size_t kDescription = 8;
  if (rest.size() < kDescription) return;
  const View raw = rest.subspan(kDescription);
  codec::Workspace workspace;
  Bytes encoded(raw.size() + raw.size() / 8 + 4096);
  const auto bytes = codec.encode(elements_in(rest), raw, encoded, workspace);
  require(bytes.has_value(), "it fits where there is room");
  Bytes back(raw.size());
  require(codec.decode(View(encoded).first(*bytes), back, workspace).has_value(),
          "what is encoded is decoded");
  require(std::equal(raw.begin(), raw.end(), back.begin()), "the bytes come back");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  const Input input = split(data, size);
  const auto* const codec = codec_in(input.rest);
  if (!codec) return 0;
  if (input.repaired)
    check_round_trip(*codec, input.rest.subspan(1));
  else
    check_decode(*codec, input.rest.subspan(1));
  return 0;
}
