// SPDX-License-Identifier: Apache-2.0
#include "store/segment_file.hpp"

#include "format/names.hpp"
#include "format/segment_maker_test.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

namespace belay::store {
namespace {

constexpr StoreId kStore{11, 22};
constexpr SegmentId kId{{1, 7}, 3};

class SegmentFileTest : public testing::Test {
 protected:
  SegmentFileTest() {
    EXPECT_TRUE(files_.make_directory("/node"));
    tier_ = make_local_tier(files_, "/node");
  }

  static format::SegmentHeader header() {
    return {.origin = {kStore, 5, kId.key, kId.rank, 4}, .block_bytes = 512};
  }
  static std::vector<format::MadeBlock> blocks(std::string_view pattern) {
    std::vector<format::MadeBlock> made;
    for (std::size_t i = 0; i < pattern.size(); ++i)
      made.push_back({{i, i}, std::vector<std::byte>(512, std::byte{1}), pattern[i] == 'x'});
    return made;
  }
  std::uint64_t put(const std::string& name, std::string_view pattern) {
    const auto bytes = format::make_segment(header(), blocks(pattern));
    (void)tier_->remove(name);  // there may be an earlier one
    const auto file = files_.create("/node/" + name, /*direct=*/false);
    EXPECT_TRUE(file && (*file)->write(0, bytes) && (*file)->close());
    return bytes.size();
  }
  Result<SegmentFile> open(FileKind kind, std::optional<std::uint64_t> file_bytes = {}) {
    return SegmentFile::open(*tier_, kId, kStore, file_bytes, kind);
  }
  static void expect_corruption(const Result<SegmentFile>& file, const std::string& text) {
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code(), Code::corruption);
    EXPECT_NE(file.error().message().find(text), std::string::npos) << file.error().message();
  }

  os::MemoryFiles files_;
  std::unique_ptr<Tier> tier_;
};

TEST_F(SegmentFileTest, PartialCopyHasOnlyTheBlocksThatAreInIt) {
  put(format::copy_name(kId), "-xx-x");
  auto copy = open(FileKind::copy);
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_FALSE(copy->complete());
  ASSERT_EQ(copy->blocks().size(), 3u);
  EXPECT_EQ(copy->blocks()[0].offset, 128u);
  EXPECT_EQ(copy->blocks()[1].offset, 640u);
  EXPECT_EQ(copy->blocks()[2].offset, 1152u);
  copy->sort_blocks();
  for (const std::uint64_t absent : {0u, 3u}) EXPECT_EQ(copy->find({absent, absent}, 512), nullptr);
  for (const std::uint64_t there : {1u, 2u, 4u})
    EXPECT_NE(copy->find({there, there}, 512), nullptr);
}

TEST_F(SegmentFileTest, CompleteCopyIsTheSegmentUnderAnotherName) {
  const std::uint64_t bytes = put(format::copy_name(kId), "xxx");
  auto copy = open(FileKind::copy, bytes);
  ASSERT_TRUE(copy) << copy.error().message();
  EXPECT_TRUE(copy->complete());
  EXPECT_EQ(copy->blocks().size(), 3u);
  EXPECT_NE(copy->where().find("/node/copy-000001-0000000007-000003"), std::string::npos);
}

TEST_F(SegmentFileTest, SizeOfTheSegmentBindsNoCopy) {
  const std::uint64_t bytes = put(format::segment_name(kId), "xxx");
  expect_corruption(open(FileKind::segment, bytes + 4096), "instead of");
  for (const char* pattern : {"xxx", "xx-"}) {
    put(format::copy_name(kId), pattern);
    EXPECT_TRUE(open(FileKind::copy, bytes + 4096)) << "the segment may be encoded, the copy not";
  }
}

TEST_F(SegmentFileTest, SegmentThatLacksBlocksIsCorruption) {
  const std::uint64_t bytes = put(format::segment_name(kId), "xx-");
  expect_corruption(open(FileKind::segment, bytes), "only copies may");
  put(format::segment_name(kId), "xxx");
  EXPECT_TRUE(open(FileKind::segment));
}

TEST_F(SegmentFileTest, CopyAndSegmentDoNotStandInForEachOther) {
  put(format::segment_name(kId), "xxx");
  EXPECT_EQ(open(FileKind::copy).error().code(), Code::not_found);
  ASSERT_TRUE(tier_->remove(format::segment_name(kId)));
  put(format::copy_name(kId), "xxx");
  EXPECT_EQ(open(FileKind::segment).error().code(), Code::not_found);
}

TEST_F(SegmentFileTest, CopyOfAnotherSegmentOrStoreIsCorruption) {
  const SegmentId other{{1, 8}, 3};
  put(format::copy_name(other), "x-");
  expect_corruption(SegmentFile::open(*tier_, other, kStore, {}, FileKind::copy), "another file's");
  put(format::copy_name(kId), "x-");
  expect_corruption(SegmentFile::open(*tier_, kId, {1, 1}, {}, FileKind::copy), "another store");
}

}  // namespace
}  // namespace belay::store
