// SPDX-License-Identifier: Apache-2.0
// checksum.hpp must come before anything that includes xxhash.h.
#include "format/checksum.hpp"

#include "store/shard_file.hpp"

#include "format/names.hpp"
#include "os/memory_files.hpp"
#include "store/pages.hpp"

#include <gtest/gtest.h>

namespace belay::store {
namespace {

class ShardFileTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kParity = 2 * format::kShardUnit + 100;
  static constexpr StoreId kStore{1, 2};

  ShardFileTest() {
    EXPECT_TRUE(files_.make_directory("/n"));
    tier_ = make_local_tier(files_, "/n");
    for (std::uint64_t i = 0; i < kParity; ++i) bytes_.push_back(static_cast<std::byte>(i * 7));
    format::ShardDescription description{
        .origin = {kStore, 3, {1, 5}, 0, 4},
        .stripe = {.key = {1, 5},
                   .number = 6,
                   .level = Level::erasure(2, 1),
                   .members = {{2, 8192, 128, 4096}, {}, {0, 4096, 0, 0}}},
        .seat = 2,
        .index = 0,
        .parity_bytes = kParity,
        .checksums = {}};
    for (std::uint64_t at = 0; at < kParity; at += format::kShardUnit)
      description.checksums.push_back(format::checksum64(
          std::span(bytes_).subspan(at, std::min(format::kShardUnit, kParity - at))));
    content_ = bytes_;
    const auto end = format::encode_shard_end(description);
    content_.insert(content_.end(), end.begin(), end.end());
    put(kId, content_);
  }

  void put(const SegmentId& id, const std::vector<std::byte>& content) {
    (void)files_.erase("/n/" + format::shard_name(id));
    const auto file = files_.create("/n/" + format::shard_name(id), /*direct=*/false);
    ASSERT_TRUE(file && (*file)->write(0, content));
  }

  inline static const SegmentId kId = shard_id({1, 5}, 6, 0);
  os::MemoryFiles files_;
  std::unique_ptr<Tier> tier_;
  std::vector<std::byte> bytes_;    ///< the parity
  std::vector<std::byte> content_;  ///< of the file
};

TEST_F(ShardFileTest, EveryRangeOfTheParityIsRead) {
  auto shard = ShardFile::open(*tier_, kId, kStore);
  ASSERT_TRUE(shard) << shard.error().message();
  EXPECT_EQ(shard->file_bytes(), content_.size());
  for (const auto& [offset, length] : {std::pair<std::uint64_t, std::uint64_t>{0, kParity},
                                       {1, 1},
                                       {kParity - 1, 1},
                                       {format::kShardUnit - 1, 2},
                                       {format::kShardUnit, format::kShardUnit},
                                       {kParity, 0}}) {
    std::vector<std::byte> got(length);
    ASSERT_TRUE(shard->read(offset, got));
    EXPECT_TRUE(std::equal(got.begin(), got.end(), bytes_.begin() + static_cast<long>(offset)));
  }
  std::vector<std::byte> more(2);
  EXPECT_FALSE(shard->read(kParity - 1, more));
  EXPECT_FALSE(shard->read(~std::uint64_t{0}, more));
}

TEST_F(ShardFileTest, EachDamagedByteIsFound) {
  for (std::size_t at = 0; at < content_.size(); at += at < kParity ? 997 : 1) {
    auto damaged = content_;
    damaged[at] ^= std::byte{4};
    put(kId, damaged);
    auto shard = ShardFile::open(*tier_, kId, kStore);
    if (at >= kParity) {
      EXPECT_FALSE(shard) << at;
      continue;
    }
    ASSERT_TRUE(shard) << at;
    std::vector<std::byte> all(kParity);
    const auto read = shard->read(0, all);
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code(), Code::corruption);
    // Other units are still good.
    const bool first = at < format::kShardUnit;
    std::vector<std::byte> other(10);
    EXPECT_TRUE(shard->read(first ? format::kShardUnit : 0, other));
  }
}

TEST_F(ShardFileTest, FilesOfOthersAreRefused) {
  EXPECT_FALSE(ShardFile::open(*tier_, kId, StoreId{9, 9}));
  EXPECT_TRUE(ShardFile::open(*tier_, kId, {}));
  put(shard_id({1, 5}, 6, 1), content_);
  EXPECT_FALSE(ShardFile::open(*tier_, shard_id({1, 5}, 6, 1), kStore));
  const auto none = ShardFile::open(*tier_, shard_id({1, 5}, 7, 0), kStore);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), Code::not_found);
}

TEST_F(ShardFileTest, AFileThatWasCutAnywhereIsRefused) {
  for (std::size_t bytes = 0; bytes < content_.size(); bytes += 2048) {
    put(kId, {content_.begin(), content_.begin() + static_cast<long>(bytes)});
    EXPECT_FALSE(ShardFile::open(*tier_, kId, kStore)) << bytes;
  }
}

TEST_F(ShardFileTest, PagesGiveAnyRangeAndRefuseWhatIsBeyondTheEnd) {
  const auto file = tier_->open(format::shard_name(kId));
  ASSERT_TRUE(file);
  for (const auto& [begin, end] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {4095, 4097}, {5000, 20000}}) {
    const auto pages = read_pages(**file, begin, end);
    ASSERT_TRUE(pages);
    EXPECT_TRUE(std::equal(pages->bytes().begin(), pages->bytes().end(),
                           content_.begin() + static_cast<long>(begin),
                           content_.begin() + static_cast<long>(end)));
  }
  EXPECT_TRUE(read_pages(**file, 0, content_.size()));
  EXPECT_FALSE(read_pages(**file, 0, content_.size() + 1));
}

}  // namespace
}  // namespace belay::store
