// SPDX-License-Identifier: Apache-2.0
#include "codec/residuals.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Values = std::vector<std::uint32_t>;

Values noise(std::size_t count) {
  std::mt19937 random(5);
  Values values(count);
  for (auto& value : values) value = static_cast<std::uint32_t>(random());
  return values;
}

std::byte* bytes_of(Values& values) { return reinterpret_cast<std::byte*>(values.data()); }

Values taken(const Differences& differences, Values& values, std::size_t piece) {
  const Residuals residuals(differences, best_kernels());
  Values made(values.size());
  for (std::size_t first = 0; first < values.size(); first += piece)
    residuals.take(bytes_of(values), first, std::min(piece, values.size() - first),
                   bytes_of(made) + 4 * first);
  return made;
}

std::uint32_t folded(std::uint32_t value) { return value << 1 ^ (value >> 31 != 0 ? ~0u : 0u); }

TEST(Residuals, AreWhatTheDefinitionSays) {
  Values values = noise(500);
  const Differences differences{.number_bytes = 4, .strides = 3, .stride = {1, 10, 70}};
  Values expected = values;
  for (const std::size_t stride : {1u, 10u, 70u})
    for (std::size_t i = expected.size(); i-- > stride;) expected[i] -= expected[i - stride];
  for (auto& value : expected) value = folded(value);
  EXPECT_EQ(taken(differences, values, 500), expected);
  EXPECT_EQ(taken(differences, values, 33), expected);
}

TEST(Residuals, OfALineAreItsSlopeAndThenNothing) {
  Values line(100);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<std::uint32_t>(1000 - 3 * i);
  const Values once = taken({.number_bytes = 4, .strides = 1, .stride = {1}}, line, 100);
  const Values twice = taken({.number_bytes = 4, .strides = 2, .stride = {1, 1}}, line, 100);
  EXPECT_EQ(once[50], folded(static_cast<std::uint32_t>(-3)));
  EXPECT_EQ(twice[50], 0u);
}

TEST(Residuals, OfAPlaneAreNothing) {
  Values plane(20 * 30);
  for (std::size_t i = 0; i < plane.size(); ++i)
    plane[i] = static_cast<std::uint32_t>(7 * (i / 30) + 1000 * (i % 30));
  const Values made = taken({.number_bytes = 4, .strides = 2, .stride = {1, 30}}, plane, 600);
  for (std::size_t row = 1; row < 20; ++row)
    for (std::size_t i = 1; i < 30; ++i) ASSERT_EQ(made[row * 30 + i], 0u);
}

TEST(Residuals, SeeNumbersOfTheOtherByteOrder) {
  Values values = noise(200);
  Values swapped = values;
  for (auto& value : swapped) value = __builtin_bswap32(value);
  Differences differences{.number_bytes = 4, .strides = 2, .stride = {2, 9}};
  const Values expected = taken(differences, values, 64);
  differences.big_endian = true;
  EXPECT_EQ(taken(differences, swapped, 64), expected);
}

TEST(Residuals, ArePutBackInPiecesOfAnySize) {
  Values values = noise(1000);
  const std::vector<std::vector<std::uint64_t>> all = {
      {1},       {3},    {1, 1},    {2, 2},        {5, 5},           {1, 1, 1},
      {4, 4, 4}, {1, 2}, {1, 3, 9}, {1, 100, 900}, {2, 40, 41, 999}, {999}};
  for (const auto& strides : all) {
    Differences differences{.number_bytes = 4,
                            .strides = static_cast<std::uint32_t>(strides.size())};
    std::copy(strides.begin(), strides.end(), differences.stride.begin());
    const Residuals residuals(differences, best_kernels());
    for (const std::size_t piece : {1u, 7u, 64u, 1000u}) {
      Values back = taken(differences, values, 1000);
      for (std::size_t first = 0; first < back.size(); first += piece)
        residuals.put_back(bytes_of(back), first, std::min(piece, back.size() - first));
      ASSERT_EQ(back, values) << strides.size() << " strides, pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace belay::codec
