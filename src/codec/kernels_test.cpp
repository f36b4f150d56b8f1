// SPDX-License-Identifier: Apache-2.0
#include "codec/kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kWidths[] = {1, 2, 4, 8};
constexpr std::size_t kCounts[] = {0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 100, 257, 1000};

Bytes noise(std::size_t bytes, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  Bytes made(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random());
  return made;
}

template <class T>
std::vector<T> numbers_of(const Bytes& bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

TEST(Shuffle, PutsTheBytesOfEachPlaceOfRecordsTogether) {
  for (const Kernels* kernels : {&plain_kernels(), &best_kernels()})
    for (const std::size_t record : {1u, 2u, 3u, 4u, 5u, 8u, 12u, 16u, 24u, 255u})
      for (const std::size_t records : kCounts) {
        const Bytes from = noise(record * records + 1);
        const std::size_t plane = records + 3;
        Bytes to(record * plane + 1);
        kernels->shuffle(record, records, from.data() + 1, plane, to.data() + 1);
        for (std::size_t r = 0; r < records; ++r)
          for (std::size_t b = 0; b < record; ++b)
            ASSERT_EQ(to[1 + b * plane + r], from[1 + r * record + b]) << record << " " << records;
        Bytes back(from.size(), from.empty() ? std::byte{} : from[0]);
        kernels->unshuffle(record, records, to.data() + 1, plane, back.data() + 1);
        ASSERT_EQ(back, from) << record << " " << records;
      }
}

TEST(Shuffle, LeavesWhatLiesBetweenThePlanes) {
  for (const std::size_t record : {2u, 4u, 8u, 16u}) {
    const Bytes from = noise(record * 40);
    Bytes to(record * 50, std::byte{0xA5});
    best_kernels().shuffle(record, 40, from.data(), 50, to.data());
    for (std::size_t b = 0; b < record; ++b)
      for (std::size_t r = 40; r < 50; ++r) ASSERT_EQ(to[b * 50 + r], std::byte{0xA5});
  }
}

/// Runs `use` with the kernels of both for each width and count, on the same bytes.
template <class Use>
void expect_agreement(Use use) {
  for (const std::size_t width : kWidths)
    for (const std::size_t count : kCounts) {
      Bytes plain = noise(width * count + 1);
      Bytes best = plain;
      use(plain_kernels().of(width), count, plain.data() + 1);
      use(best_kernels().of(width), count, best.data() + 1);
      ASSERT_EQ(plain, best) << count << " numbers of " << width;
    }
}

TEST(NumberKernels, OfAllProcessorsAgree) {
  const Bytes more = noise(8 * 1000 + 3, 2);
  const std::byte* const other = more.data() + 3;
  using Numbers = Kernels::Numbers;
  expect_agreement([&](const Numbers& k, std::size_t n, std::byte* to) { k.add(n, other, to); });
  expect_agreement(
      [&](const Numbers& k, std::size_t n, std::byte* to) { k.subtract(n, other, to); });
  expect_agreement(
      [&](const Numbers& k, std::size_t n, std::byte* to) { k.add_swapped(n, other, to); });
  expect_agreement(
      [&](const Numbers& k, std::size_t n, std::byte* to) { k.subtract_swapped(n, other, to); });
  expect_agreement([](const Numbers& k, std::size_t n, std::byte* to) { k.fold(n, to); });
  expect_agreement([](const Numbers& k, std::size_t n, std::byte* to) { k.unfold(n, to); });
  expect_agreement([](const Numbers& k, std::size_t n, std::byte* to) { k.swap(n, to); });
  for (const std::size_t stride : {1u, 2u, 3u, 4u, 7u, 8u, 31u, 64u, 500u, 2000u})
    expect_agreement(
        [&](const Numbers& k, std::size_t n, std::byte* to) { k.accumulate(n, stride, to); });
}

TEST(NumberKernels, AddAndSubtractWrapping) {
  const Bytes more = noise(4 * 100, 2);
  Bytes sums = noise(4 * 100);
  const auto expected = numbers_of<std::uint32_t>(sums);
  const auto added = numbers_of<std::uint32_t>(more);
  const Kernels::Numbers& kernels = best_kernels().of(4);
  kernels.add(100, more.data(), sums.data());
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_EQ(numbers_of<std::uint32_t>(sums)[i], expected[i] + added[i]);
  kernels.subtract(100, more.data(), sums.data());
  EXPECT_EQ(numbers_of<std::uint32_t>(sums), expected);
  kernels.subtract_swapped(100, more.data(), sums.data());
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_EQ(numbers_of<std::uint32_t>(sums)[i], expected[i] - __builtin_bswap32(added[i]));
}

TEST(NumberKernels, AccumulateAtAnyStride) {
  for (const std::size_t stride : {1u, 2u, 3u, 5u, 70u}) {
    Bytes bytes = noise(2 * 333);
    auto expected = numbers_of<std::uint16_t>(bytes);
    for (std::size_t i = stride; i < expected.size(); ++i)
      expected[i] = static_cast<std::uint16_t>(expected[i] + expected[i - stride]);
    best_kernels().of(2).accumulate(333, stride, bytes.data());
    EXPECT_EQ(numbers_of<std::uint16_t>(bytes), expected) << stride;
  }
}

TEST(NumberKernels, FoldSmallNumbersOfBothSigns) {
  const std::vector<std::int64_t> numbers = {0, -1, 1, -2, 2, INT64_MAX, INT64_MIN};
  const std::vector<std::uint64_t> folded = {0, 1, 2, 3, 4, UINT64_MAX - 1, UINT64_MAX};
  Bytes bytes(numbers.size() * 8);
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  best_kernels().of(8).fold(numbers.size(), bytes.data());
  EXPECT_EQ(numbers_of<std::uint64_t>(bytes), folded);
  best_kernels().of(8).unfold(numbers.size(), bytes.data());
  EXPECT_EQ(numbers_of<std::int64_t>(bytes), numbers);
}

}  // namespace
}  // namespace belay::codec
