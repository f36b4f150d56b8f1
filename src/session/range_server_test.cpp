// SPDX-License-Identifier: Apache-2.0
#include "session/range_server.hpp"

#include "format/checksum.hpp"
#include "format/names.hpp"
#include "format/shard.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

namespace belay::session {
namespace {

constexpr std::uint64_t kParity = 2 * format::kShardUnit;

class RangeServerTest : public testing::Test {
 protected:
  RangeServerTest() {
    EXPECT_TRUE(files_.make_directory("/node"));
    format::ShardDescription shard;
    shard.origin = {.store = store_, .key = id_.key, .ranks = 2};
    shard.stripe = {id_.key, 0, Level::erasure(1, 1), {{0, kParity}, {1, kParity}}};
    shard.parity_bytes = kParity;
    std::vector<std::byte> bytes(kParity, std::byte{7});
    for (std::uint64_t at = 0; at < kParity; at += format::kShardUnit)
      shard.checksums.push_back(
          format::checksum64(std::span(bytes).subspan(at, format::kShardUnit)));
    const auto end = format::encode_shard_end(shard);
    bytes.insert(bytes.end(), end.begin(), end.end());
    auto file = files_.create(path_, false);
    EXPECT_TRUE(file && (*file)->write(0, bytes));
  }

  /// Whether each range of 100 bytes is given.
  std::vector<bool> ask(const std::vector<std::uint64_t>& offsets) {
    std::vector<RangeQuestion> questions;
    for (const std::uint64_t offset : offsets)
      questions.push_back(
          {.file = {id_, FileKind::shard, where_}, .offset = offset, .length = 100});
    const auto answer = server_.answer(encode_questions(questions));
    std::vector<bool> given;
    for (std::size_t at = 0; at < answer.size(); at += given.back() ? 101 : 1)
      given.push_back(answer[at] == std::byte{1});
    return given;
  }

  const StoreId store_{};
  const SegmentId id_ = shard_id({1, 1}, 0, 0);
  const std::string path_ = "/node/" + format::shard_name(id_);
  os::MemoryFiles files_;
  std::unique_ptr<store::Tier> tier_ = store::make_local_tier(files_, "/node");
  catalog::Whereabouts whereabouts_;
  catalog::Whereabouts::Place where_ = whereabouts_.place("/node");
  Log log_;
  RangeServer server_{*tier_, whereabouts_, store_, log_};
};

TEST_F(RangeServerTest, AFileThatIsDamagedInOnePlaceGivesAllOthers) {
  ASSERT_TRUE(files_.flip(path_, 8 * 50));
  EXPECT_EQ(ask({0, format::kShardUnit, 200, kParity - 100}),
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(server_.damaged().size(), 1u);
}

TEST_F(RangeServerTest, AFileThatCannotBeOpenedGivesNothing) {
  ASSERT_TRUE(files_.cut(path_, kParity));
  EXPECT_EQ(ask({0, format::kShardUnit}), (std::vector<bool>{false, false}));
  EXPECT_EQ(server_.damaged().size(), 1u);
}

TEST_F(RangeServerTest, AFileWithoutDamageGivesEverything) {
  EXPECT_EQ(ask({0, format::kShardUnit - 50, kParity - 100}),
            (std::vector<bool>{true, true, true}));
  EXPECT_TRUE(server_.damaged().empty());
}

}  // namespace
}  // namespace belay::session
