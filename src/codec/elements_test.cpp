// SPDX-License-Identifier: Apache-2.0
#include "codec/codec.hpp"

#include <gtest/gtest.h>

#include <complex>

namespace belay::codec {
namespace {

using Number = Elements::Number;

TEST(Elements, AreNumbersOfTheirWidth) {
  EXPECT_EQ(elements_of(element_type<double>(), Shape(7)),
            (Elements{.number = Number::floating, .bytes = 8, .dimensions = 1, .shape = {7}}));
  EXPECT_EQ(elements_of(element_type<std::int16_t>(), Shape()),
            (Elements{.number = Number::integer, .bytes = 2}));
  EXPECT_EQ(elements_of(element_type<bool>(), Shape()),
            (Elements{.number = Number::integer, .bytes = 1}));
}

TEST(Elements, OfComplexNumbersHaveTwoParts) {
  EXPECT_EQ(elements_of(element_type<std::complex<float>>(), Shape()),
            (Elements{.number = Number::floating, .bytes = 4, .parts = 2}));
  EXPECT_EQ(elements_of(element_type<std::complex<double>>(), Shape()),
            (Elements{.number = Number::floating, .bytes = 8, .parts = 2}));
}

TEST(Elements, OfOtherTypesAreRecords) {
  EXPECT_EQ(elements_of({ElementKind::opaque, 40, "Particle"}, Shape()), (Elements{.bytes = 40}));
  EXPECT_EQ(elements_of({ElementKind::serialized, 1, ""}, Shape()), Elements{});
  EXPECT_EQ(elements_of({ElementKind::opaque, 0, ""}, Shape()), Elements{});
}

TEST(Elements, FoldTheSlowestOfManyDimensions) {
  EXPECT_EQ(
      elements_of(element_type<float>(), Shape(2, 3, 4, 5, 6, 7)),
      (Elements{.number = Number::floating, .bytes = 4, .dimensions = 4, .shape = {24, 5, 6, 7}}));
  const std::uint64_t huge = std::uint64_t{1} << 40;
  EXPECT_EQ(elements_of(element_type<float>(), Shape(huge, huge, 5, 6, 7)).shape[0],
            ~std::uint64_t{0});
}

}  // namespace
}  // namespace belay::codec
