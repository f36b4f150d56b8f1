// SPDX-License-Identifier: Apache-2.0
#include "compress/fpc.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace belay::bench {
namespace {

Bytes bytes_of(const std::vector<double>& numbers, std::size_t tail = 0) {
  Bytes bytes(numbers.size() * sizeof(double) + tail, std::byte{0x5a});
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), numbers.size() * sizeof(double));
  return bytes;
}

/// The size that it came to.
std::size_t expect_round_trip(const Bytes& raw, unsigned table_bits = 10) {
  const Bytes encoded = fpc_encode(raw, table_bits);
  Bytes back(raw.size(), std::byte{0xee});
  fpc_decode(encoded, back, table_bits);
  EXPECT_EQ(back, raw) << raw.size() << " bytes";
  return encoded.size();
}

std::vector<double> waves(std::size_t count) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(static_cast<double>(i) * 1e-3);
  return numbers;
}

TEST(Fpc, BringsBackAnyNumberOfAnyWords) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {0u, 1u, 2u, 3u, 17u, 1000u, 32767u, 32768u, 32769u, 70001u}) {
    std::vector<double> numbers(count);
    for (double& number : numbers) {
      const std::uint64_t word = random();  // NaNs with payloads among them
      std::memcpy(&number, &word, sizeof word);
    }
    expect_round_trip(bytes_of(numbers));
  }
}

TEST(Fpc, BringsBackEveryKindOfNumber) {
  using Limits = std::numeric_limits<double>;
  const std::vector<double> kinds = {0.0,
                                     -0.0,
                                     Limits::quiet_NaN(),
                                     -Limits::quiet_NaN(),
                                     Limits::signaling_NaN(),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::denorm_min(),
                                     -Limits::denorm_min(),
                                     Limits::min() / 3,
                                     Limits::max(),
                                     Limits::lowest(),
                                     1.0};
  std::mt19937_64 random(2);
  std::vector<double> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(kinds[random() % kinds.size()]);
  expect_round_trip(bytes_of(numbers));
}

TEST(Fpc, BringsBackResidualsOfEveryLength) {
  std::vector<double> numbers;
  for (int bits = 0; bits < 64; ++bits)
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t word = (~std::uint64_t{0} >> bits) ^ static_cast<std::uint64_t>(i);
      double number;
      std::memcpy(&number, &word, sizeof word);
      numbers.push_back(number);
    }
  expect_round_trip(bytes_of(numbers));
}

TEST(Fpc, KeepsBytesAfterTheLastWord) {
  for (std::size_t tail = 0; tail < 8; ++tail)
    for (const std::size_t count : {0u, 1u, 100u}) expect_round_trip(bytes_of(waves(count), tail));
}

TEST(Fpc, WorksWithTablesOfAnySize) {
  const Bytes raw = bytes_of(waves(10000));
  for (const unsigned bits : {0u, 1u, 2u, 16u}) expect_round_trip(raw, bits);
}

TEST(Fpc, PredictsWhatRepeatsAndWhatGrowsEvenly) {
  std::vector<double> repeated, even;
  for (int i = 0; i < 50000; ++i) {
    repeated.push_back(1.0 / (1 + i % 7));
    even.push_back(1.0 + i * std::ldexp(1.0, -40));
  }
  // A code of half a byte for each number, and no residuals once the tables have learnt.
  EXPECT_LT(expect_round_trip(bytes_of(repeated)), repeated.size() / 2 + 500);
  EXPECT_LT(expect_round_trip(bytes_of(even)), even.size() / 2 + 500);
}

TEST(Fpc, RefusesWhatIsCutOff) {
  const Bytes raw = bytes_of(waves(1000));
  const Bytes encoded = fpc_encode(raw, 10);
  Bytes back(raw.size());
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, encoded.size() - 1})
    EXPECT_EXIT(fpc_decode(std::span(encoded).first(size), back, 10), testing::ExitedWithCode(1),
                "FPC: ");
}

}  // namespace
}  // namespace belay::bench
