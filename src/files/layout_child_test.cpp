// SPDX-License-Identifier: Apache-2.0
#include "files/layout_child.hpp"

#include "files/child.hpp"
#include "files/file_bytes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belay::files {
namespace {

std::vector<std::byte> bytes_of_text(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

constexpr std::uint64_t kPatience = 10'000'000'000;

TEST(Child, MessagesArriveInOrderAndThenTheEnd) {
  auto child = Child::start([](int out) {
    send_message(out, bytes_of_text("one"));
    send_message(out, {});
  });
  ASSERT_TRUE(child);
  EXPECT_EQ(*child->receive(kPatience, 100), bytes_of_text("one"));
  EXPECT_TRUE(child->receive(kPatience, 100)->empty());
  EXPECT_EQ(child->receive(kPatience, 100).error().code(), Code::not_found);
}

TEST(Child, DeathSilenceAndTooMuchAreErrors) {
  auto dies = Child::start([](int) { ::raise(SIGKILL); });
  EXPECT_EQ(dies->receive(kPatience, 100).error().code(), Code::not_found);
  auto silent = Child::start([](int) { ::pause(); });
  EXPECT_EQ(silent->receive(1'000'000, 100).error().code(), Code::busy);
  auto endless = Child::start([](int out) { send_message(out, std::vector<std::byte>(101)); });
  EXPECT_EQ(endless->receive(kPatience, 100).error().code(), Code::corruption);
}

class FindLayouts : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/belay-layout-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  /// A variable of 100 integers in netCDF's classic format.
  FileToRead netcdf() const {
    std::string bytes("CDF\x01\0\0\0\0", 8);
    const auto number = [&](int value) {
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    };
    for (const int value : {10, 1, 1}) number(value);
    bytes += std::string("x\0\0\0", 4);
    for (const int value : {100, 0, 0, 11, 1, 1}) number(value);
    bytes += std::string("v\0\0\0", 4);
    for (const int value : {1, 0, 0, 0, 4, 400, 80}) number(value);
    bytes.resize(80 + 400);
    const std::string path = directory_ + "/v.nc";
    std::ofstream(path) << bytes;
    return {path, bytes.size()};
  }

  std::string directory_;
};

TEST_F(FindLayouts, AreInTheOrderOfTheFiles) {
  const FileToRead good = netcdf();
  const auto layouts = find_layouts({{directory_ + "/none", 5}, good, good});
  ASSERT_EQ(layouts.size(), 3u);
  EXPECT_TRUE(layouts[0].variables.empty());
  for (const std::size_t i : {1u, 2u}) {
    ASSERT_EQ(layouts[i].variables.size(), 1u) << layouts[i].remark;
    const Variable& variable = layouts[i].variables[0];
    EXPECT_EQ(variable.name, "v");
    EXPECT_EQ(variable.ranges, (std::vector<Range>{{80, 400}}));
    EXPECT_EQ(variable.type, (ElementType{ElementKind::i32, 4, kBigEndian}));
    EXPECT_EQ(variable.shape, Shape(100));
  }
}

TEST_F(FindLayouts, AFileThatHasShrunkGetsNone) {
  FileToRead file = netcdf();
  file.bytes = 300;
  EXPECT_TRUE(find_layouts({file})[0].variables.empty());
}

TEST_F(FindLayouts, NoTimeMeansNoLayoutAndNoHang) {
  const FileToRead good = netcdf();
  const auto layouts = find_layouts({good, good}, {.file_ns = 0});
  ASSERT_EQ(layouts.size(), 2u);
  EXPECT_FALSE(layouts[0].remark.empty());
}

TEST(Layout, OverlapsAndRangesOutsideAreRefused) {
  const ElementType bytes{};
  const auto check = [&](std::vector<Range> one, std::vector<Range> other) {
    Layout layout;
    layout.variables = {{"a", bytes, Shape(bytes_of(one)), one},
                        {"b", bytes, Shape(bytes_of(other)), other}};
    return check_layout(layout, 100).has_value();
  };
  EXPECT_TRUE(check({{0, 10}, {50, 10}}, {{10, 40}}));
  EXPECT_FALSE(check({{0, 10}}, {{9, 1}}));
  EXPECT_FALSE(check({{0, 10}}, {{91, 10}}));
  EXPECT_FALSE(check({{0, 10}}, {{~std::uint64_t{0} - 3, 10}}));
}

Layout with_skeleton() {
  Layout layout;
  layout.format = FileFormat::hdf5;
  layout.variables = {{"a", {}, Shape(30), {{50, 10}, {10, 20}}}};
  layout.in_skeleton = {{"few", {{ElementKind::i32, 4, kBigEndian}, Shape(3)}, 12},
                        {"none", {{ElementKind::f64, 8, ""}, Shape(0, 7)}, 0}};
  return layout;
}

TEST(Layout, VariablesOfTheSkeletonArriveAsTheyWereSent) {
  const Layout sent = with_skeleton();
  std::vector<std::byte> bytes;
  put_layout(bytes, sent);
  const auto arrived = get_layout(bytes);
  ASSERT_TRUE(arrived) << arrived.error().message();
  EXPECT_EQ(arrived->in_skeleton, sent.in_skeleton);
  EXPECT_TRUE(check_layout(*arrived, 100));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(get_layout(std::span(bytes).first(size))) << size;
}

TEST(Layout, VariablesOfTheSkeletonThatMakeNoSenseAreRefusedOrLeftOut) {
  const ArrayType single{{ElementKind::u8, 1, ""}, {}};
  ArrayType opaque = single;
  opaque.type.name = "\x1b[31m";
  for (const SkeletonVariable& odd : {SkeletonVariable{"few", single, 1},
                                      {"a", single, 1},
                                      {"", single, 1},
                                      {std::string(kMostVariableNameBytes + 1, 'x'), single, 1},
                                      {"larger", single, 101},
                                      {"odd", opaque, 1},
                                      {"wide", {{ElementKind::u8, 0, ""}, {}}, 1}}) {
    Layout layout = with_skeleton();
    layout.in_skeleton.push_back(odd);
    EXPECT_FALSE(check_layout(layout, 100)) << odd.name.substr(0, 20);
    keep_listable(layout, 100);
    EXPECT_TRUE(check_layout(layout, 100));
    EXPECT_EQ(layout.in_skeleton, with_skeleton().in_skeleton);
  }
}

TEST(Layout, VariablesOfBothKindsAreCountedTogether) {
  Layout layout = with_skeleton();
  for (std::size_t i = 0; i < kMostVariables; ++i)
    layout.in_skeleton.push_back({std::to_string(i), {{ElementKind::u8, 1, ""}, {}}, 1});
  EXPECT_FALSE(check_layout(layout, 100));
  std::vector<std::byte> bytes;
  put_layout(bytes, layout);
  EXPECT_FALSE(get_layout(bytes));
  keep_listable(layout, 100);
  EXPECT_EQ(layout.in_skeleton.size(), kMostVariables - 1);
  EXPECT_TRUE(check_layout(layout, 100));
}

TEST(Layout, LargeVariablesInManyPiecesAreSplitAtRows) {
  const Variable large{"x", {ElementKind::f64, 8, ""}, Shape(10, 5), {{1000, 200}, {0, 200}}};
  const auto parts = split_large(large, 130);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].name, "x[0]");
  EXPECT_EQ(parts[0].shape, Shape(3, 5));
  EXPECT_EQ(parts[0].ranges, (std::vector<Range>{{1000, 120}}));
  EXPECT_EQ(parts[1].ranges, (std::vector<Range>{{1120, 80}, {0, 40}}));
  EXPECT_EQ(parts[3].shape, Shape(1, 5));
  EXPECT_EQ(parts[3].whole, (ArrayType{large.type, large.shape}));
  EXPECT_EQ(split_large(large, 400).size(), 1u);
  EXPECT_EQ(split_large(large, 20).front().shape, Shape(2));
  EXPECT_EQ(split_large({"x", {}, Shape(400), {{0, 400}}}, 20).size(), 1u);
}

TEST(Layout, TheRestIsAllThatNoVariableHas) {
  Layout layout;
  layout.variables = {{"a", {}, Shape(30), {{50, 10}, {10, 20}}}};
  EXPECT_EQ(rest_of(layout, 100), (std::vector<Range>{{0, 10}, {30, 20}, {60, 40}}));
  EXPECT_EQ(rest_of({}, 0), std::vector<Range>{});
}

}  // namespace
}  // namespace belay::files
