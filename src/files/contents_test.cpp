// SPDX-License-Identifier: Apache-2.0
#include "files/contents.hpp"

#include "files/range_wire.hpp"
#include "format/wire.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace belay::files {
namespace {

Contents sample() {
  Contents contents;
  contents.step = 40;
  PackedFile cut{.path = "a/b.h5",
                 .bytes = 1000,
                 .mode = 0640,
                 .mtime_ns = -5,
                 .atime_ns = 7,
                 .format = FileFormat::hdf5,
                 .digest = {1, 2},
                 .regions = {}};
  std::vector<Range> chunks;
  std::vector<Range> rest = {{0, 10}};
  for (std::uint64_t i = 0; i < 9; ++i) {
    chunks.push_back({10 + i * 110, 100});
    rest.push_back({110 + i * 110, 10});
  }
  cut.regions = {
      {"a/b.h5:", "", rest},
      {"a/b.h5:x", "x", chunks, ArrayType{{ElementKind::f32, 4, kBigEndian}, Shape(15, 17)}}};
  cut.in_skeleton = {{"a/b.h5:few", "few", {{ElementKind::i32, 4, kBigEndian}, Shape(3)}, 12},
                     {"a/b.h5:none", "none", {{ElementKind::f64, 8, ""}, Shape(0, 7)}, 0}};
  contents.files = {cut,
                    {.path = "empty",
                     .bytes = 0,
                     .mode = 0,
                     .mtime_ns = 0,
                     .atime_ns = 0,
                     .format = {},
                     .digest = {},
                     .regions = {{"empty:", "", {}}}}};
  return contents;
}

TEST(Contents, AreReadAsTheyWereWritten) {
  const Contents written = sample();
  const auto read = decode_contents(encode_contents(written));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->step, written.step);
  ASSERT_EQ(read->files.size(), 2u);
  const PackedFile& file = read->files[0];
  EXPECT_EQ(file.path, "a/b.h5");
  EXPECT_EQ(file.mode, 0640u);
  EXPECT_EQ(file.mtime_ns, -5);
  EXPECT_EQ(file.digest, (Digest{1, 2}));
  ASSERT_EQ(file.regions.size(), 2u);
  EXPECT_EQ(file.regions[0].ranges, written.files[0].regions[0].ranges);
  EXPECT_EQ(file.regions[1].ranges, written.files[0].regions[1].ranges);
  EXPECT_EQ(file.regions[1].variable, "x");
  EXPECT_FALSE(file.regions[0].whole);
  EXPECT_EQ(file.regions[1].whole, written.files[0].regions[1].whole);
  EXPECT_EQ(file.in_skeleton, written.files[0].in_skeleton);
}

/// One file of ten bytes, in one region.
std::vector<std::byte> table_of_format(std::uint32_t format) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.start("BELAYFIL", format);
  writer.field(std::uint32_t{0});
  writer.field(std::uint64_t{0});
  writer.field(std::uint32_t{1});
  writer.field(std::uint16_t{1});
  writer.text("a");
  writer.field(std::uint64_t{10});
  writer.zeros(4 + 8 + 8 + 1 + 16);  // mode, times, format, digest
  writer.field(std::uint32_t{1});
  writer.field(std::uint8_t{2});
  writer.text("a:");
  writer.field(std::uint16_t{0});
  put_ranges(writer, std::vector<Range>{{0, 10}});
  if (format >= 2) writer.field(std::uint8_t{0});
  if (format >= 3) writer.field(std::uint32_t{0});
  return bytes;
}

TEST(Contents, OfEarlierFormatsAreRead) {
  for (const std::uint32_t format : {1u, 2u, 3u}) {
    const auto read = decode_contents(table_of_format(format));
    ASSERT_TRUE(read) << format << read.error().message();
    ASSERT_EQ(read->files.size(), 1u);
    EXPECT_EQ(read->files[0].regions[0].ranges, (std::vector<Range>{{0, 10}}));
    EXPECT_EQ(read->files[0].tells_arrays, format > 1);
    EXPECT_TRUE(read->files[0].in_skeleton.empty());
  }
  for (const std::uint32_t format : {0u, 4u})
    EXPECT_EQ(decode_contents(table_of_format(format)).error().code(), Code::unsupported);
}

TEST(Contents, VariablesWithoutRegionsThatMakeNoSenseAreRefused) {
  const auto refused = [](const std::function<void(SkeletonEntry&)>& change) {
    Contents contents = sample();
    change(contents.files[0].in_skeleton[0]);
    const auto read = decode_contents(encode_contents(contents));
    return !read && read.error().code() == Code::corruption;
  };
  EXPECT_FALSE(refused([](SkeletonEntry& entry) { entry.bytes = 1000; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.bytes = 1001; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.name = ""; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.name = "line\nbreak"; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.name = "a/b.h5:x"; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.name = "empty:"; }));  // of another file
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.variable = ""; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.variable = "x"; }));  // it is in a region
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.variable = "none"; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.array.type.bytes = 0; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) { entry.array.type.name = "\x1b[31m"; }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) {
    entry.array.shape = Shape(std::vector<std::uint64_t>(kMostDimensions + 1, 1));
  }));
  EXPECT_TRUE(refused([](SkeletonEntry& entry) {
    entry.array.shape = Shape(std::uint64_t{1} << 40, std::uint64_t{1} << 40);
  }));
}

TEST(Contents, VariablesOfBothKindsAreCountedTogether) {
  const auto decoded = [](std::size_t in_skeleton) {
    Contents contents = sample();
    auto& entries = contents.files[0].in_skeleton;
    entries.clear();
    for (std::size_t i = 0; i < in_skeleton; ++i) {
      const std::string name = std::to_string(i);
      entries.push_back({"a/b.h5:" + name, name, {{ElementKind::u8, 1, ""}, {}}, 1});
    }
    return decode_contents(encode_contents(contents)).has_value();
  };
  EXPECT_TRUE(decoded(kMostVariables - 1));  // and x
  EXPECT_FALSE(decoded(kMostVariables));
}

TEST(Contents, EqualDistancesTakeOneLine) {
  Contents contents = sample();
  const std::size_t few = encode_contents(contents).size();
  contents.files[0].regions[1].ranges.pop_back();
  contents.files[0].regions[0].ranges.pop_back();
  contents.files[0].bytes -= 110;
  EXPECT_EQ(encode_contents(contents).size(), few);
}

TEST(Contents, EveryPrefixIsRefused) {
  const auto bytes = encode_contents(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode_contents(std::span(bytes).first(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code(), Code::corruption) << size;
  }
}

TEST(Contents, PathsThatLeadOutAreRefused) {
  for (const char* path :
       {"/etc/passwd", "../x", "a/../b", "a/..", "..", ".", "./a", "a//b", "a/", ""})
    EXPECT_FALSE(check_path(path)) << path;
  EXPECT_FALSE(check_path(std::string("a\0b", 3)));
  EXPECT_FALSE(check_path(std::string(256, 'x')));
  for (const char* path : {"a", "a/b", "..a", "a..", "...", ".hidden/x"})
    EXPECT_TRUE(check_path(path)) << path;
}

TEST(Contents, BytesThatAreMissingOrDoubleAreRefused) {
  for (const std::vector<Range>& ranges : {std::vector<Range>{{0, 999}},
                                           {{0, 500}, {499, 501}},
                                           {{0, 500}, {501, 499}},
                                           {{1, 999}},
                                           {{0, 1001}},
                                           {{0, 1000}, {0, 1000}}}) {
    Contents contents = sample();
    contents.files[0].regions = {{"r", "", ranges}};
    EXPECT_FALSE(decode_contents(encode_contents(contents)));
  }
}

}  // namespace
}  // namespace belay::files
