// SPDX-License-Identifier: Apache-2.0
// What every Codec must do.
#include "codec/codec.hpp"
#include "codec/workspace.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;
using Number = Elements::Number;
using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t bound) { return random() % bound; }

/// What arrays hold: fields, noise, steps, and the numbers that trip arithmetic up.
enum class Content { zeros, noise, smooth, steps, odd };

std::uint64_t bits_of(double value, std::uint32_t bytes) {
  if (bytes == 4) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

std::size_t width_of(const Elements& elements) {
  return std::clamp<std::size_t>(elements.bytes, 1, 8);
}

/// NaNs with payloads, infinities, numbers below the normal ones, both zeros, the ends of integers.
std::uint64_t odd_bits(Random& random, std::size_t width) {
  constexpr std::uint64_t kOdd[] = {0,
                                    0x8000000000000000,
                                    0x7FF0000000000000,
                                    0xFFF0000000000000,
                                    0x7FF0000000000001,
                                    0xFFFFFFFFFFFFFFFF,
                                    0x7FFFFFFFFFFFFFFF,
                                    0x0000000000000001,
                                    0x800FFFFFFFFFFFFF,
                                    0x7F800000,
                                    0xFF800001,
                                    0x7FC0BEEF,
                                    0x80000000};
  const std::uint64_t bits = kOdd[below(random, std::size(kOdd))];
  return below(random, 2) ? bits : bits >> (64 - 8 * width);
}

std::uint64_t number_bits(Random& random, Content content, const Elements& elements,
                          std::size_t index) {
  const double value = std::sin(static_cast<double>(index) * 0.003) * 40 + 300;
  switch (content) {
    case Content::zeros:
      return 0;
    case Content::noise:
      return random();
    case Content::smooth:
      return elements.number == Number::floating ? bits_of(value, elements.bytes)
                                                 : static_cast<std::uint64_t>(value * 1e3);
    case Content::steps:
      return bits_of(static_cast<double>(index / 57), elements.bytes);
    case Content::odd:
      return odd_bits(random, width_of(elements));
  }
  return 0;
}

Bytes array_of(Random& random, Content content, const Elements& elements, std::size_t bytes) {
  const std::size_t width = width_of(elements);
  Bytes array(bytes + width);
  for (std::size_t i = 0; i * width < bytes; ++i) {
    std::uint64_t bits = number_bits(random, content, elements, i);
    if (elements.big_endian && elements.bytes == width)
      bits = __builtin_bswap64(bits) >> (64 - 8 * width);
    std::memcpy(array.data() + i * width, &bits, width);
  }
  array.resize(bytes);
  return array;
}

Elements random_elements(Random& random) {
  constexpr std::uint32_t kWidths[] = {1, 2, 4, 8};
  constexpr std::uint32_t kRecords[] = {1, 2, 3, 5, 7, 8, 12, 16, 24, 100, 255, 256, 1000, 0};
  constexpr std::uint64_t kExtents[] = {0, 1, 2, 3, 5, 8, 9, 16, 31, 64, 100, 1000, ~0ull};
  Elements elements;
  elements.number = static_cast<Number>(below(random, 3));
  elements.bytes = elements.number == Number::none ? kRecords[below(random, std::size(kRecords))]
                   : below(random, 20) == 0        ? 16
                                                   : kWidths[below(random, 4)];
  if (elements.number == Number::floating && elements.bytes < 4) elements.bytes = 8;
  elements.parts = below(random, 4) == 0 ? 2 : below(random, 30) == 0 ? 0 : 1;
  elements.big_endian = below(random, 3) == 0;
  elements.dimensions = static_cast<std::uint32_t>(below(random, 5));
  for (std::size_t i = 0; i < elements.dimensions; ++i)
    elements.shape[i] = kExtents[below(random, std::size(kExtents))];
  return elements;
}

std::string shown(const Elements& elements, std::size_t bytes) {
  std::string text = "number " + std::to_string(static_cast<int>(elements.number)) + " of " +
                     std::to_string(elements.bytes) + " x " + std::to_string(elements.parts) +
                     (elements.big_endian ? " big" : "") + ", " + std::to_string(bytes) +
                     " bytes, shape";
  for (std::size_t i = 0; i < elements.dimensions; ++i)
    text += " " + std::to_string(elements.shape[i]);
  return text;
}

/// More than any codec adds: a word for each plane, and the frame around it.
std::size_t room_for(std::size_t raw_bytes) { return raw_bytes + raw_bytes / 8 + 255 * 64 + 4096; }

class CodecConformance : public ::testing::TestWithParam<const Codec*> {
 protected:
  const Codec& codec() const { return *GetParam(); }

  Bytes encoded(const Elements& elements, std::span<const std::byte> raw) {
    Bytes to(room_for(raw.size()));
    const auto bytes = codec().encode(elements, raw, to, workspace_);
    EXPECT_TRUE(bytes.has_value()) << shown(elements, raw.size());
    to.resize(bytes.value_or(0));
    return to;
  }

  void expect_round_trip(const Elements& elements, std::span<const std::byte> raw) {
    const Bytes made = encoded(elements, raw);
    Bytes back(raw.size() + 1, std::byte{0xA5});
    const auto decoded =
        codec().decode(made, std::span(back).subspan(back.size() > 1 ? 1 : 0, raw.size()), other_);
    ASSERT_TRUE(decoded.has_value())
        << decoded.error().message() << ": " << shown(elements, raw.size());
    ASSERT_TRUE(std::equal(raw.begin(), raw.end(), back.begin() + (back.size() > 1 ? 1 : 0)))
        << shown(elements, raw.size());
  }

  Workspace workspace_;
  Workspace other_;
};

TEST_P(CodecConformance, IsFoundByItsNameAndItsId) {
  EXPECT_EQ(codec_named(codec().name()), &codec());
  EXPECT_EQ(codec_of(codec().id()), &codec());
}

TEST_P(CodecConformance, GivesBackWhateverBytesItGot) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Elements elements = random_elements(random);
    const std::size_t bytes = below(random, 4) == 0 ? below(random, 20000) : below(random, 600);
    const auto content = static_cast<Content>(below(random, 5));
    // At any address: the first of these bytes is not part of the array.
    const Bytes array = array_of(random, content, elements, bytes + 1);
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(elements, std::span(array).subspan(1)));
  }
}

TEST_P(CodecConformance, GivesBackLargeExtents) {
  Random random(2);
  for (int i = 0; i < 12; ++i) {
    const Elements elements = random_elements(random);
    const auto content = static_cast<Content>(below(random, 5));
    const Bytes array = array_of(random, content, elements, (2 << 20) + below(random, 3 << 20));
    ASSERT_NO_FATAL_FAILURE(expect_round_trip(elements, array));
  }
}

TEST_P(CodecConformance, MakesNothingOfNothing) {
  EXPECT_EQ(encoded({}, {}).size(), 0u);
  EXPECT_TRUE(codec().decode({}, {}, workspace_));
  const Bytes one(1);
  const auto decoded = codec().decode(one, {}, workspace_);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code(), Code::corruption);
}

TEST_P(CodecConformance, EncodesTheSameBytesTheSameWay) {
  Random random(3);
  Elements elements{.number = Number::floating, .bytes = 8, .dimensions = 2, .shape = {100, 100}};
  const Bytes array = array_of(random, Content::smooth, elements, 80000);
  const Bytes once = encoded(elements, array);
  encoded({.number = Number::integer, .bytes = 2}, std::span(array).first(333));
  EXPECT_EQ(encoded(elements, array), once);
}

TEST_P(CodecConformance, SaysWhenItDoesNotFitAndWritesNoFurther) {
  Random random(4);
  for (int i = 0; i < 60; ++i) {
    const Elements elements = random_elements(random);
    const auto content = static_cast<Content>(below(random, 5));
    const Bytes array = array_of(random, content, elements, 1 + below(random, 5000));
    const std::size_t needed = encoded(elements, array).size();
    for (const std::size_t room : {std::size_t{0}, needed / 2, needed - 1}) {
      Bytes to(room);
      to.shrink_to_fit();
      EXPECT_FALSE(codec().encode(elements, array, to, workspace_)) << room << " of " << needed;
    }
  }
}

TEST_P(CodecConformance, RefusesWhatIsCutOrContinued) {
  Random random(5);
  for (int i = 0; i < 100; ++i) {
    const Elements elements = random_elements(random);
    const Bytes array = array_of(random, Content::smooth, elements, 1 + below(random, 3000));
    Bytes made = encoded(elements, array);
    Bytes raw(array.size());
    for (int cut = 0; cut < 20; ++cut) {
      const Bytes front(made.begin(), made.begin() + static_cast<long>(below(random, made.size())));
      const auto decoded = codec().decode(front, raw, workspace_);
      ASSERT_FALSE(decoded) << front.size() << " of " << made.size();
      EXPECT_EQ(decoded.error().code(), Code::corruption);
    }
    made.push_back(std::byte{0});
    EXPECT_FALSE(codec().decode(made, raw, workspace_));
    made.pop_back();
    raw.push_back(std::byte{0});
    EXPECT_FALSE(codec().decode(made, raw, workspace_));
  }
}

TEST_P(CodecConformance, SurvivesFlippedBits) {
  Random random(6);
  for (int i = 0; i < 100; ++i) {
    const Elements elements = random_elements(random);
    const auto content = static_cast<Content>(below(random, 5));
    const Bytes array = array_of(random, content, elements, 1 + below(random, 3000));
    const Bytes made = encoded(elements, array);
    Bytes raw(array.size());
    for (int flip = 0; flip < 50; ++flip) {
      Bytes damaged = made;
      const std::size_t among =
          below(random, 2) == 0 ? std::min<std::size_t>(made.size(), 48) : made.size();
      damaged[below(random, among)] ^= static_cast<std::byte>(1u << below(random, 8));
      const auto decoded = codec().decode(damaged, raw, workspace_);
      ASSERT_TRUE(decoded || decoded.error().code() == Code::corruption);
    }
    ASSERT_TRUE(codec().decode(made, raw, workspace_));
    ASSERT_EQ(raw, array);
  }
}

TEST_P(CodecConformance, SurvivesBytesThatNoCodecMade) {
  Random random(7);
  for (int i = 0; i < 3000; ++i) {
    Bytes bytes(1 + below(random, 200));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[0] = static_cast<std::byte>(below(random, 20));
    Bytes raw(1 + below(random, 4000));
    const auto decoded = codec().decode(bytes, raw, workspace_);
    ASSERT_TRUE(decoded || decoded.error().code() == Code::corruption);
  }
}

TEST_P(CodecConformance, ServesThreadsAtOnce) {
  Random random(8);
  const Elements elements{.number = Number::floating, .bytes = 4};
  const Bytes array = array_of(random, Content::smooth, elements, 300000);
  const Bytes expected = encoded(elements, array);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      Workspace workspace;
      for (int i = 0; i < 5; ++i) {
        Bytes to(room_for(array.size()));
        const auto bytes = codec().encode(elements, array, to, workspace);
        to.resize(bytes.value_or(0));
        EXPECT_EQ(to, expected);
        Bytes raw(array.size());
        EXPECT_TRUE(codec().decode(to, raw, workspace));
        EXPECT_EQ(raw, array);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(All, CodecConformance,
                         ::testing::ValuesIn(all_codecs().begin(), all_codecs().end()),
                         [](const auto& tested) {
                           std::string name(tested.param->name());
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(CodecRegistry, IsInTheOrderOfIdsAndHasNoOther) {
  EXPECT_TRUE(std::is_sorted(all_codecs().begin(), all_codecs().end(),
                             [](const Codec* a, const Codec* b) { return a->id() < b->id(); }));
  EXPECT_EQ(all_codecs().back()->id(), kLastCodec);
  EXPECT_EQ(codec_of(CodecId::absent), nullptr);
  EXPECT_EQ(codec_of(static_cast<CodecId>(999)), nullptr);
  EXPECT_EQ(codec_named("auto"), nullptr);
  EXPECT_EQ(codec_named(""), nullptr);
}

}  // namespace
}  // namespace belay::codec
