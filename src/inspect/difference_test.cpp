// SPDX-License-Identifier: Apache-2.0
#include "inspect/difference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

namespace belay::inspect {
namespace {

template <class T>
Difference compare(const std::vector<T>& a, const std::vector<T>& b) {
  DifferenceMeter meter(element_type<T>().kind, a.size());
  meter.add(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)), 0);
  return meter.finish();
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(DifferenceMeter, IntegersAreExactOverTheirWholeRange) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto found = compare<std::int64_t>({0, kLeast, 5}, {3, kMost, 5});
  EXPECT_EQ(std::get<std::uint64_t>(found.largest), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(found.largest_at, 1u);
  EXPECT_EQ(found.differing, 2u);
}

TEST(DifferenceMeter, EqualNaNsDoNotDifferAndOthersHaveNoDistance) {
  const auto found = compare<double>({kNaN, kNaN, 1, 4}, {kNaN, 1, kNaN, 2});
  EXPECT_EQ(found.differing, 3u);
  EXPECT_EQ(found.nan, 2u);
  EXPECT_EQ(std::get<double>(found.largest), 2);
  EXPECT_EQ(found.largest_at, 3u);
  EXPECT_EQ(found.mean, 1) << "of the equal pair and the one that is 2 apart";
}

TEST(DifferenceMeter, InfinityIsInfinitelyFarFromAnythingElse) {
  EXPECT_EQ(std::get<double>(compare<double>({kInfinity, 1}, {-kInfinity, 1}).largest), kInfinity);
  EXPECT_EQ(compare<double>({kInfinity}, {kInfinity}).differing, 0u);
  const auto complex = compare<std::complex<double>>({{kInfinity, 3}}, {{kInfinity, 7}});
  EXPECT_EQ(std::get<double>(complex.largest), 4);
}

TEST(DifferenceMeter, ZerosOfDifferentSignDifferByNothing) {
  const auto found = compare<float>({0.0f, 1}, {-0.0f, 1});
  EXPECT_EQ(found.differing, 1u);
  EXPECT_EQ(std::get<double>(found.largest), 0);
  EXPECT_EQ(found.largest_at, 0u);
}

TEST(DifferenceMeter, TheFirstOfTheLargestIsNamed) {
  EXPECT_EQ(compare<std::uint8_t>({0, 9, 0, 9}, {1, 0, 0, 0}).largest_at, 1u);
}

}  // namespace
}  // namespace belay::inspect
