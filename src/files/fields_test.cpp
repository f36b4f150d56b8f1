// SPDX-License-Identifier: Apache-2.0
#include "files/fields.hpp"

#include <gtest/gtest.h>

namespace belay::files {
namespace {

const ElementType kDouble{ElementKind::f64, 8, ""};

Field field(const char* name, std::uint64_t offset, Shape shape = {}) {
  return {.name = name, .offset = offset, .array = {kDouble, std::move(shape)}};
}

Field compound(const char* name, std::uint64_t offset, std::uint32_t bytes,
               std::vector<Field> fields) {
  return {.name = name,
          .offset = offset,
          .array = {{ElementKind::opaque, bytes, "compound"}, {}},
          .fields = std::move(fields)};
}

std::vector<std::byte> written(const std::vector<Field>& fields) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  put_fields(writer, fields);
  return bytes;
}

TEST(Fields, GapsAndArraysAndCompoundsAreGood) {
  EXPECT_TRUE(are_fields({field("a", 0), field("b", 16, Shape(3)), field("c", 40)}, 64));
  EXPECT_TRUE(are_fields({compound("in", 8, 24, {field("a", 0), field("b", 16)})}, 32));
}

TEST(Fields, WhatHasNoPlaceOrNameOfItsOwnIsRefused) {
  EXPECT_FALSE(are_fields({field("a", 0), field("a", 8)}, 64));
  EXPECT_FALSE(are_fields({field("", 0)}, 64));
  EXPECT_FALSE(are_fields({field("a", 0), field("b", 4)}, 64));
  EXPECT_FALSE(are_fields({field("a", 8), field("b", 0)}, 64));
  EXPECT_FALSE(are_fields({field("a", 57)}, 64));
  EXPECT_FALSE(are_fields({field("a", ~std::uint64_t{0})}, 64));
  EXPECT_FALSE(are_fields({field("a", 0, Shape(~std::uint64_t{0} / 8 + 1))}, 64));
  EXPECT_FALSE(are_fields({compound("in", 0, 12, {field("a", 8)})}, 64));
}

TEST(Fields, ComeBackFromBytesAndNotFromParts) {
  const std::vector<Field> fields = {field("a", 0),
                                     compound("in", 8, 24, {field("b", 0, Shape(1, 2))})};
  const auto bytes = written(fields);
  format::WireReader reader(bytes);
  const auto again = get_fields(reader);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(written(again), bytes);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    format::WireReader cut{std::span<const std::byte>(bytes).first(length)};
    EXPECT_TRUE(get_fields(cut).empty()) << length;
  }
}

TEST(Fields, EndlessDepthAndCountsAreRefused) {
  std::vector<Field> deep = {field("a", 0)};
  for (int i = 0; i < 20; ++i) deep = {compound("in", 0, 8, deep)};
  const auto bytes = written(deep);
  format::WireReader reader(bytes);
  EXPECT_FALSE(written(get_fields(reader)) == bytes);
  const std::vector<std::byte> many(4, std::byte{0xFF});
  format::WireReader hostile(many);
  EXPECT_TRUE(get_fields(hostile).empty());
}

}  // namespace
}  // namespace belay::files
