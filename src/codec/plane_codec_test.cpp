// SPDX-License-Identifier: Apache-2.0
#include "codec/plane_codec.hpp"

#include "codec/workspace.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Elements kWords{.number = Elements::Number::integer, .bytes = 4};

template <class Make>
Bytes words(std::size_t count, Make make) {
  Bytes bytes(count * 4);
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<std::uint32_t>(make(i));
    std::memcpy(bytes.data() + 4 * i, &word, 4);
  }
  return bytes;
}

std::size_t encoded_bytes(std::string_view codec, const Bytes& raw) {
  Workspace workspace;
  Bytes to(raw.size() + 64);
  return codec_named(codec)->encode(kWords, raw, to, workspace).value_or(0);
}

TEST(PlaneCodec, NeedsOneByteForAPlaneThatIsConstant) {
  const std::size_t count = 1 << 18;
  const Bytes noisy =
      words(count, [](std::size_t i) { return 0x01020300u + (i * i * i >> 7 & 0xFF); });
  for (const char* codec : {"shuffle-lz4", "shuffle-zstd"})
    EXPECT_LE(encoded_bytes(codec, noisy), 1 + 4 + (4 + count) + 3 * (4 + 1)) << codec;
}

TEST(PlaneCodec, LeavesOutWhatOnlyRepeats) {
  const Bytes same = words(1 << 20, [](std::size_t) { return 0x01020304u; });
  for (const char* codec : {"lz4", "shuffle-lz4", "shuffle-zstd", "delta3-zstd"})
    EXPECT_LE(encoded_bytes(codec, same), 200u) << codec;
}

TEST(PlaneCodec, StoresNoiseAsItIsAndCompressesTheRest) {
  std::mt19937 random(1);
  const std::size_t count = 1 << 18;
  const Bytes noisy =
      words(count, [&](std::size_t i) { return (random() & 0xFFFF) | (i / 1000 % 7 << 16); });
  const std::size_t bytes = encoded_bytes("shuffle-zstd", noisy);
  EXPECT_GE(bytes, 2 * count);
  EXPECT_LE(bytes, 2 * count + count / 100);
}

TEST(PlaneCodec, DoesNotTakeAPlaneForNoiseThatIsNoiseInPart) {
  std::mt19937 random(2);
  const std::size_t count = 1 << 18;
  for (const std::size_t quiet : {std::size_t{0}, count / 2, count - count / 4}) {
    const Bytes half = words(
        count, [&](std::size_t i) { return i >= quiet && i < quiet + count / 4 ? 0 : random(); });
    EXPECT_LE(encoded_bytes("shuffle-zstd", half), 3 * count + count / 10) << quiet;
    EXPECT_LE(encoded_bytes("shuffle-lz4", half), 3 * count + count / 10) << quiet;
  }
}

}  // namespace
}  // namespace belay::codec
