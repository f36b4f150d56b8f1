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

/// Numbers of all widths, 0 and the widest among them.
Bytes of_all_widths(std::size_t width, std::size_t count) {
  std::mt19937_64 random(count);
  Bytes bytes(width * count);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned bits = static_cast<unsigned>(random() % (8 * width + 1));
    const std::uint64_t number = bits == 0 ? 0 : random() >> (64 - bits);
    std::memcpy(bytes.data() + width * i, &number, width);
  }
  return bytes;
}

TEST(NumberKernels, PackNumbersByTheirLeadsAndBack) {
  for (const std::size_t width : kWidths)
    for (const std::size_t count : kCounts)
      for (const std::uint64_t before : {0u, 3u, 8u, 15u}) {
        const Bytes from = of_all_widths(width, count);
        Bytes leads[2], bits[2], back(from.size());
        std::uint64_t filled[2];
        for (const int best : {0, 1}) {
          const auto& kernels = (best ? best_kernels() : plain_kernels()).of(width);
          leads[best].resize(count);
          bits[best].resize(2 + width * count + Kernels::kBitsRoom);
          filled[best] =
              kernels.pack(count, from.data(), leads[best].data(), bits[best].data(), before);
        }
        ASSERT_EQ(filled[0], filled[1]);
        ASSERT_EQ(leads[0], leads[1]);
        bits[0].resize((filled[0] + 7) / 8);
        bits[1].resize((filled[0] + 7) / 8);
        ASSERT_EQ(bits[0], bits[1]);
        for (const int best : {0, 1}) {
          const auto& kernels = (best ? best_kernels() : plain_kernels()).of(width);
          std::fill(back.begin(), back.end(), std::byte{0xA5});
          ASSERT_EQ(kernels.unpack(count, leads[0].data(), bits[0], before, back.data()),
                    filled[0]);
          ASSERT_EQ(back, from) << width << " " << count << " " << before;
        }
      }
}

TEST(NumberKernels, PackWhatIsBelowTheHighestTwoBits) {
  const std::vector<std::uint32_t> numbers = {0, 1, 3, 5, 0xC0000003u, 6};
  Bytes from(24), leads(6), bits(24 + Kernels::kBitsRoom);
  std::memcpy(from.data(), numbers.data(), from.size());
  EXPECT_EQ(best_kernels().of(4).pack(6, from.data(), leads.data(), bits.data(), 0), 1u + 30 + 1);
  const Bytes expected = {std::byte{0}, std::byte{1},  std::byte{3},
                          std::byte{4}, std::byte{63}, std::byte{5}};
  EXPECT_EQ(leads, expected);
  std::uint32_t packed = 0;
  std::memcpy(&packed, bits.data(), sizeof packed);
  EXPECT_EQ(packed, 1u | 3u << 1 | 0u << 31);
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
