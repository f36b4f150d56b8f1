// SPDX-License-Identifier: Apache-2.0
#include "capture/regions.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace belay::capture {
namespace {

std::unique_ptr<RegionAccess> access_to(std::span<std::byte> bytes, ElementType type, Shape shape) {
  return std::make_unique<detail::ArrayAccess>(bytes, std::move(type), std::move(shape));
}

class RegionsTest : public testing::Test {
 protected:
  std::unique_ptr<RegionAccess> bytes(std::size_t count) {
    return access_to(std::span(memory_).first(count), {}, Shape(count));
  }

  std::vector<std::byte> memory_{std::vector<std::byte>(100)};
  Regions regions_;
};

TEST_F(RegionsTest, AreFoundByNameAndInItsOrder) {
  ASSERT_TRUE(regions_.protect("b", bytes(10)));
  ASSERT_TRUE(regions_.protect("a", bytes(20)));
  EXPECT_NE(regions_.find("a"), nullptr);
  EXPECT_EQ(regions_.find("c"), nullptr);
  std::string order;
  for (const auto& region : regions_) order += region.first;
  EXPECT_EQ(order, "ab");
  EXPECT_EQ(regions_.bytes(), 30u);
}

TEST_F(RegionsTest, TheSameNameAgainReplacesTheMemory) {
  ASSERT_TRUE(regions_.protect("a", bytes(10)));
  ASSERT_TRUE(regions_.protect("a", bytes(20)));
  EXPECT_EQ(regions_.size(), 1u);
  EXPECT_EQ(regions_.bytes(), 20u);
}

TEST_F(RegionsTest, ARefusedProtectLeavesTheFormerRegion) {
  ASSERT_TRUE(regions_.protect("a", bytes(10)));
  EXPECT_FALSE(regions_.protect("a", access_to(memory_, {}, Shape(7))));
  EXPECT_EQ(regions_.bytes(), 10u);
}

TEST_F(RegionsTest, WhatCannotBeRecordedIsRefused) {
  EXPECT_FALSE(regions_.protect("", bytes(1)));
  EXPECT_FALSE(regions_.protect("a", nullptr));
  EXPECT_FALSE(regions_.protect("a", access_to(memory_, {ElementKind::opaque, 1, "a\nb"}, 100)));
  EXPECT_FALSE(regions_.protect("a", access_to(memory_, {ElementKind::f64, 8, ""}, Shape(13))));
  EXPECT_FALSE(regions_.protect(
      "a", access_to({static_cast<std::byte*>(nullptr), std::size_t{8}}, {}, Shape(8))));
  EXPECT_EQ(regions_.size(), 0u);
}

TEST_F(RegionsTest, UnprotectForgets) {
  ASSERT_TRUE(regions_.protect("a", bytes(10)));
  ASSERT_TRUE(regions_.unprotect("a"));
  const auto again = regions_.unprotect("a");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::not_found);
}

TEST(SerializerAccess, RunsItsFunctionsEachTime) {
  int value = 1;
  int loaded = 0;
  detail::SerializerAccess access([&](Writer& writer) { writer.value(value); },
                                  [&](Reader& reader) { loaded = reader.value<int>(); });
  EXPECT_EQ(access.view()->size(), sizeof(int));
  value = 2;
  const auto saved = access.view();
  ASSERT_TRUE(saved);
  const std::vector<std::byte> copy(saved->begin(), saved->end());
  EXPECT_EQ(access.shape(), Shape(sizeof(int)));
  const auto room = access.room(copy.size());
  ASSERT_TRUE(room);
  std::copy(copy.begin(), copy.end(), room->begin());
  ASSERT_TRUE(access.restored());
  EXPECT_EQ(loaded, 2);
}

TEST(SerializerAccess, WhatFunctionsThrowBecomesAnError) {
  detail::SerializerAccess access([](Writer&) { throw std::runtime_error("no ink"); },
                                  [](Reader&) { throw 7; });
  const auto saved = access.view();
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message().find("no ink"), std::string::npos);
  ASSERT_TRUE(access.room(4));
  EXPECT_FALSE(access.restored());
}

TEST(SerializerAccess, ALengthThatCannotBeIsAnErrorAndNotAnAllocation) {
  detail::SerializerAccess access([](Writer& writer) { writer.value(~std::uint64_t{0}); },
                                  [](Reader& reader) { EXPECT_TRUE(reader.text().empty()); });
  ASSERT_TRUE(access.view());
  EXPECT_FALSE(access.restored());
}

TEST(VectorAccess, IsResizedToWhatWasSaved) {
  std::vector<std::uint32_t> vector(3);
  detail::VectorAccess<std::uint32_t, std::allocator<std::uint32_t>> access(vector);
  const auto room = access.room(40);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->size(), 40u);
  EXPECT_EQ(vector.size(), 10u);
}

TEST(VectorAccess, GrowthThatCannotBeIsNoSpace) {
  std::vector<std::uint32_t> vector(3);
  detail::VectorAccess<std::uint32_t, std::allocator<std::uint32_t>> access(vector);
  const auto room = access.room(~std::uint64_t{0});
  ASSERT_FALSE(room);
  EXPECT_EQ(room.error().code(), Code::no_space);
  EXPECT_EQ(vector.size(), 3u);
}

}  // namespace
}  // namespace belay::capture
