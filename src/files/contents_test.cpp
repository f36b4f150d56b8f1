// SPDX-License-Identifier: Apache-2.0
#include "files/contents.hpp"

#include <gtest/gtest.h>

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
