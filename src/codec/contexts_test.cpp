// SPDX-License-Identifier: Apache-2.0
#include "codec/contexts.hpp"

#include "codec/leads.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

Bytes noisy_numbers(std::size_t bytes) {
  std::mt19937_64 random(bytes);
  Bytes made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

std::uint64_t number_at(const Bytes& bytes, std::size_t width, std::int64_t i, bool big_endian) {
  if (i < 0) return 0;
  std::uint64_t value = 0;
  for (std::size_t b = 0; b < width; ++b) {
    const std::size_t place = big_endian ? b : width - 1 - b;
    value = value << 8 |
            std::to_integer<std::uint64_t>(bytes[static_cast<std::size_t>(i) * width + place]);
  }
  return value;
}

/// As docs/format.md has it, number by number.
std::vector<std::uint64_t> defined(const Bytes& raw, const Differences& differences) {
  const std::size_t width = differences.number_bytes;
  const std::size_t count = raw.size() / width;
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * width);
  unsigned table_bits = 8;
  while (table_bits < 16 && count >> table_bits > 0) ++table_bits;
  std::vector<std::uint64_t> table(std::size_t{1} << table_bits), made;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
    const auto stride = static_cast<std::int64_t>(differences.stride[0]);
    const auto x = [&](std::int64_t at) {
      return number_at(raw, width, at, differences.big_endian);
    };
    const std::uint64_t context = (x(i - stride) - x(i - 2 * stride)) & mask;
    std::uint64_t& foretold =
        table[(context >> 3 * width) * 0x9E3779B97F4A7C15 >> (64 - table_bits)];
    const std::uint64_t difference = (x(i) - x(i - stride)) & mask;
    const std::uint64_t left = (difference - foretold) & mask;
    const bool negative = left >> (8 * width - 1) != 0;
    made.push_back(negative ? ~(left << 1) & mask : left << 1 & mask);
    foretold = difference;
  }
  return made;
}

class ContextsTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  Bytes taken(const Differences& differences, const Bytes& raw, std::size_t piece) {
    const std::size_t width = differences.number_bytes;
    const std::size_t count = raw.size() / width;
    Contexts contexts(differences, count, workspace_);
    Bytes made(raw.size());
    for (std::size_t first = 0; first < count; first += piece)
      contexts.take(raw.data(), first, std::min(piece, count - first), made.data() + first * width);
    return made;
  }

  Workspace workspace_;
};

TEST_P(ContextsTest, AreWhatTheDefinitionSaysAndComeBackInPiecesOfAnySize) {
  for (const std::size_t numbers : {2u, 9u, 300u, 5000u, 70000u})
    for (const std::uint64_t stride : {1u, 2u, 3u, 200u})
      for (const bool big_endian : {false, true}) {
        if (stride >= numbers) continue;
        const Differences differences{
            .number_bytes = GetParam(), .big_endian = big_endian, .strides = 1, .stride = {stride}};
        Bytes raw = noisy_numbers(numbers * GetParam());
        // Half of it is there twice, so that something is foretold.
        std::copy_n(raw.begin(), raw.size() / 2,
                    raw.end() - static_cast<std::ptrdiff_t>(raw.size() / 2));
        const Bytes made = taken(differences, raw, numbers);
        const auto expected = defined(raw, differences);
        for (std::size_t i = 0; i < numbers; ++i)
          ASSERT_EQ(number_at(made, GetParam(), static_cast<std::int64_t>(i), false), expected[i])
              << numbers << " " << stride << " " << i;
        ASSERT_EQ(taken(differences, raw, 64), made);
        for (const std::size_t piece : {std::size_t{7}, numbers}) {
          Contexts contexts(differences, numbers, workspace_);
          Bytes back = made;
          for (std::size_t first = 0; first < numbers; first += piece)
            contexts.put_back(back.data(), first, std::min(piece, numbers - first));
          for (std::size_t i = 0; i < numbers; ++i)
            ASSERT_EQ(number_at(back, GetParam(), static_cast<std::int64_t>(i), false),
                      number_at(raw, GetParam(), static_cast<std::int64_t>(i), big_endian));
        }
      }
}

TEST_P(ContextsTest, OfWhatComesAgainAreNothing) {
  const std::size_t numbers = 4000;
  Bytes raw = noisy_numbers(numbers / 40 * GetParam());
  for (int i = 1; i < 40; ++i)
    raw.insert(raw.end(), raw.begin(), raw.begin() + numbers / 40 * GetParam());
  const Bytes made = taken({.number_bytes = GetParam(), .strides = 1, .stride = {1}}, raw, numbers);
  const auto left = static_cast<std::size_t>(
      std::count_if(made.begin(), made.end(), [](std::byte byte) { return byte != std::byte{}; }));
  // Numbers of one byte have few contexts, in which different ones come next.
  EXPECT_LT(left, GetParam() == 1 ? made.size() : made.size() / 4);
}

INSTANTIATE_TEST_SUITE_P(Widths, ContextsTest, ::testing::Values(1u, 2u, 4u, 8u));

}  // namespace
}  // namespace belay::codec
