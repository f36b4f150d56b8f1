// SPDX-License-Identifier: Apache-2.0
#include "codec/payload_layout.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace belay::codec {
namespace {

using Number = Elements::Number;
using Strides = std::vector<std::uint64_t>;

Strides strides_of(const Layout& layout) {
  const auto& differences = layout.differences;
  return {differences.stride.begin(), differences.stride.begin() + differences.strides};
}

Elements doubles(std::vector<std::uint64_t> shape, std::uint32_t parts = 1) {
  Elements elements{.number = Number::floating, .bytes = 8, .parts = parts};
  elements.dimensions = static_cast<std::uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), elements.shape.begin());
  return elements;
}

Strides lorenzo(const Elements& elements, std::size_t raw_bytes) {
  return strides_of(layout_for(Transform::lorenzo, elements, raw_bytes));
}

TEST(Layout, HasTheStridesOfRowsAndPlanes) {
  EXPECT_EQ(lorenzo(doubles({}), 8000), (Strides{1}));
  EXPECT_EQ(lorenzo(doubles({1000}), 8000), (Strides{1}));
  EXPECT_EQ(lorenzo(doubles({20, 50}), 8000), (Strides{1, 50}));
  EXPECT_EQ(lorenzo(doubles({10, 10, 10}), 8000), (Strides{1, 10, 100}));
  EXPECT_EQ(lorenzo(doubles({9, 10, 10, 11}), 80000), (Strides{1, 11, 110, 1100}));
  EXPECT_EQ(lorenzo(doubles({20, 50}, 2), 16000), (Strides{2, 100}));
}

TEST(Layout, LeavesOutStridesThatTheExtentIsTooShortFor) {
  EXPECT_EQ(lorenzo(doubles({100, 100, 100}), 8 * 10000), (Strides{1, 100}));
  EXPECT_EQ(lorenzo(doubles({100, 100, 100}), 8 * 10001), (Strides{1, 100, 10000}));
  EXPECT_EQ(lorenzo(doubles({100}), 8), Strides{});
  EXPECT_EQ(lorenzo(doubles({2, ~0ull, ~0ull}), 8000), (Strides{1}));
}

TEST(Layout, PassesOverDimensionsOfOneOrNone) {
  EXPECT_EQ(lorenzo(doubles({30, 1, 1}), 8000), (Strides{1}));
  EXPECT_EQ(lorenzo(doubles({30, 0, 40}), 8000), (Strides{1, 40}));
  EXPECT_EQ(lorenzo(doubles({0, 0}), 8000), (Strides{1}));
}

TEST(Layout, KeepsTheComponentsOfVectorsApart) {
  EXPECT_EQ(lorenzo(doubles({1000, 3}), 24000), (Strides{3}));
  EXPECT_EQ(strides_of(layout_for(Transform::delta1, doubles({1000, 3}), 24000)), (Strides{3}));
  EXPECT_EQ(strides_of(layout_for(Transform::delta2, doubles({10, 10, 3}), 2400)), (Strides{3, 3}));
  EXPECT_EQ(strides_of(layout_for(Transform::delta3, doubles({10, 10, 3}), 2400)),
            (Strides{3, 3, 3}));
}

TEST(Layout, ShufflesByWholeElements) {
  const auto record = [](Elements elements) {
    return layout_for(Transform::shuffle, elements, 8000).record_bytes;
  };
  EXPECT_EQ(record(doubles({})), 8u);
  EXPECT_EQ(record(doubles({}, 2)), 16u);
  EXPECT_EQ(record({.number = Number::none, .bytes = 24}), 24u);
  EXPECT_EQ(record({.number = Number::none, .bytes = 255}), 255u);
  EXPECT_EQ(record({.number = Number::none, .bytes = 400}), 8u);
  EXPECT_EQ(record({.number = Number::none, .bytes = 257}), 1u);
  EXPECT_EQ(record({.number = Number::none, .bytes = 0}), 1u);
}

TEST(Layout, ComesBackFromItsHeader) {
  for (const Transform transform : {Transform::none, Transform::shuffle, Transform::delta1,
                                    Transform::delta2, Transform::delta3, Transform::lorenzo}) {
    Elements elements = doubles({10, 10, 10});
    elements.big_endian = true;
    const Layout layout = layout_for(transform, elements, 8000);
    std::vector<std::byte> header(layout.header_bytes());
    encode_layout(layout, header.data());
    const auto decoded = decode_layout(transform, header, 8000);
    ASSERT_TRUE(decoded) << decoded.error().message();
    EXPECT_EQ(*decoded, layout);
  }
}

/// The header of a lorenzo layout of 1000 doubles with a byte changed.
bool is_refused(std::size_t offset, unsigned value, Transform transform = Transform::lorenzo) {
  const Layout layout = layout_for(Transform::lorenzo, doubles({10, 10, 10}), 8000);
  std::vector<std::byte> header(layout.header_bytes());
  encode_layout(layout, header.data());
  header[offset] = static_cast<std::byte>(value);
  const auto decoded = decode_layout(transform, header, 8000);
  return !decoded && decoded.error().code() == Code::corruption;
}

TEST(Layout, IsRefusedWhereTheHeaderCannotBeOne) {
  EXPECT_FALSE(is_refused(0, 8));
  EXPECT_TRUE(is_refused(0, 0)) << "records of nothing";
  EXPECT_TRUE(is_refused(0, 12)) << "records that are no whole numbers";
  EXPECT_TRUE(is_refused(1, 0)) << "strides without numbers";
  EXPECT_TRUE(is_refused(1, 3)) << "numbers of a width that is none";
  EXPECT_TRUE(is_refused(2, 2)) << "an order of bytes that is none";
  EXPECT_TRUE(is_refused(3, 5)) << "more strides than there can be";
  EXPECT_TRUE(is_refused(4, 0)) << "a stride of nothing";
  EXPECT_TRUE(is_refused(4, 10)) << "strides that do not ascend";
  EXPECT_TRUE(is_refused(21, 4)) << "a stride past the end";
  EXPECT_TRUE(is_refused(27, 0xFF)) << "a stride past any end";
  EXPECT_TRUE(is_refused(0, 8, Transform::delta1)) << "more strides than the codec has";
  EXPECT_TRUE(is_refused(0, 8, Transform::delta3)) << "strides that are not the same";
  EXPECT_TRUE(is_refused(0, 8, Transform::shuffle)) << "strides of a codec without";
}

}  // namespace
}  // namespace belay::codec
