// SPDX-License-Identifier: Apache-2.0
#include "store/file_writer.hpp"

#include "base/try.hpp"
#include "os/faulty_files.hpp"
#include "os/memory.hpp"
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace belay::store {
namespace {

constexpr std::size_t kPage = os::kDirectAlignment;

Result<void> accept(std::span<const std::byte>, std::uint64_t) { return {}; }

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::byte>(i * 7 + seed);
  return result;
}

class FileWriterTest : public testing::Test {
 protected:
  FileWriterTest() { EXPECT_TRUE(memory_.make_directory("/d")); }

  os::MemoryFiles memory_;
  os::Operation::Kind failing_ = os::Operation::Kind::list;
  int error_ = 0;
  int writes_ = 0;
  os::FaultyFiles files_{memory_, [this](const os::Operation& operation) {
                           if (operation.kind == os::Operation::Kind::write) ++writes_;
                           return os::Action{.error = operation.kind == failing_ ? error_ : 0};
                         }};
  std::unique_ptr<Tier> tier_ = make_local_tier(files_, "/d");
  os::AlignedMemory buffer_ = *os::AlignedMemory::allocate(2 * kPage);
};

TEST_F(FileWriterTest, AFileMadeOfARetiredOneHasNothingOfItInTheEnd) {
  memory_.set_in_memory(true);
  for (const std::size_t pages : {5u, 2u, 7u}) {
    const std::string name = "segment-" + std::to_string(pages);
    const auto older = tier_->list().value();
    for (const std::string& old : older) ASSERT_TRUE(tier_->retire(old));
    auto writer = FileWriter::create_large(*tier_, name);
    ASSERT_TRUE(writer);
    EXPECT_EQ(tier_->list().value(), std::vector<std::string>{name}) << "the old one has served";
    EXPECT_EQ(tier_->touch(name).value() > 0, !older.empty());
    writer->lend(buffer_.bytes());
    const auto whole = pattern(pages * kPage, static_cast<unsigned>(pages));
    ASSERT_TRUE(writer->append(whole));
    ASSERT_TRUE(writer->finish());
    EXPECT_TRUE(*read_whole(*tier_, name, accept) == whole);
  }
}

TEST_F(FileWriterTest, RetiredFilesGoWhenSpaceIsLacking) {
  memory_.set_in_memory(true);
  memory_.set_capacity(20 * kPage);
  for (const char* name : {"copy-1", "segment-1"}) {
    auto writer = FileWriter::create(*tier_, name);
    ASSERT_TRUE(writer);
    writer->lend(buffer_.bytes());
    ASSERT_TRUE(writer->append(pattern(6 * kPage, 1)));
    ASSERT_TRUE(writer->finish());
  }
  ASSERT_TRUE(tier_->retire("copy-1"));
  auto writer = FileWriter::create_large(*tier_, "segment-2");
  ASSERT_TRUE(writer);
  writer->lend(buffer_.bytes());
  const auto whole = pattern(10 * kPage, 2);
  ASSERT_TRUE(writer->append(whole)) << "the copy stays though its space is needed";
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(tier_->list().value(), (std::vector<std::string>{"segment-1", "segment-2"}));
  EXPECT_TRUE(*read_whole(*tier_, "segment-2", accept) == whole);
}

TEST_F(FileWriterTest, WhereSpaceIsScarceRetiredFilesGoAtOnce) {
  memory_.set_in_memory(true);
  memory_.set_capacity(8 * kPage);
  auto writer = FileWriter::create(*tier_, "segment-1");
  ASSERT_TRUE(writer);
  writer->lend(buffer_.bytes());
  ASSERT_TRUE(writer->append(pattern(7 * kPage, 1)));
  ASSERT_TRUE(writer->finish());
  ASSERT_TRUE(tier_->retire("segment-1"));
  EXPECT_TRUE(tier_->list()->empty());
}

TEST_F(FileWriterTest, LargePiecesThatLieAsTheyWillInTheFileAreNotCopied) {
  for (const std::size_t shift : {0u, 1u}) {  // by one byte: they must be
    const std::string name = "f" + std::to_string(shift);
    auto writer = FileWriter::create(*tier_, name);
    ASSERT_TRUE(writer);
    writer->lend(buffer_.bytes());
    const auto whole = pattern((3u << 20) + 6 * kPage, 3);
    auto memory = os::AlignedMemory::allocate(whole.size() + kPage);
    ASSERT_TRUE(memory);
    const auto place = memory->bytes().subspan(shift, whole.size());
    std::copy(whole.begin(), whole.end(), place.begin());
    const std::size_t cuts[] = {0, 100, 2u << 20, (3u << 20) + kPage + 7, whole.size()};
    writes_ = 0;
    for (std::size_t i = 0; i + 1 < std::size(cuts); ++i) {
      ASSERT_TRUE(writer->append_in_place(place.subspan(cuts[i], cuts[i + 1] - cuts[i])));
      EXPECT_EQ(writer->offset(), cuts[i + 1]);
    }
    ASSERT_TRUE(writer->finish());
    EXPECT_TRUE(*read_whole(*tier_, name, accept) == whole);
    if (shift == 0)
      EXPECT_LT(writes_, 10);
    else
      EXPECT_GT(writes_, 100) << "two pages at a time";
  }
}

TEST_F(FileWriterTest, SmallPiecesComeTogetherInOrder) {
  auto writer = FileWriter::create(*tier_, "f");
  ASSERT_TRUE(writer);
  writer->lend(buffer_.bytes());
  const auto whole = pattern(5 * kPage, 1);
  std::span<const std::byte> rest = whole;
  for (std::size_t piece = 1; !rest.empty(); piece += 97) {
    const std::size_t take = std::min(piece, rest.size());
    ASSERT_TRUE(writer->append(rest.first(take)));
    rest = rest.subspan(take);
    EXPECT_EQ(writer->offset(), whole.size() - rest.size());
  }
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(*memory_.peek("/d/f"), whole);
}

TEST_F(FileWriterTest, WholePagesGoBeforeWhatIsBuffered) {
  auto writer = FileWriter::create(*tier_, "f");
  ASSERT_TRUE(writer);
  auto pages = *os::AlignedMemory::allocate(3 * kPage);
  const auto first = pattern(3 * kPage, 1);
  std::copy(first.begin(), first.end(), pages.bytes().begin());
  ASSERT_TRUE(writer->append_aligned(pages.bytes()));
  ASSERT_TRUE(writer->append_aligned({}));
  writer->lend(buffer_.bytes());
  const auto second = pattern(kPage, 2);
  ASSERT_TRUE(writer->append(second));
  ASSERT_TRUE(writer->finish());
  auto expected = first;
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(*memory_.peek("/d/f"), expected);
}

TEST_F(FileWriterTest, AReservationLeavesNoTrace) {
  auto writer = FileWriter::create(*tier_, "f");
  ASSERT_TRUE(writer);
  auto pages = *os::AlignedMemory::allocate(std::size_t{8} << 20);
  ASSERT_TRUE(writer->append_aligned(pages.bytes()));
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(memory_.peek("/d/f")->size(), std::size_t{8} << 20);
}

TEST_F(FileWriterTest, AReservationThatFailsIsNoReasonToFail) {
  failing_ = os::Operation::Kind::reserve;
  error_ = ENOSPC;
  auto writer = FileWriter::create(*tier_, "f");
  auto pages = *os::AlignedMemory::allocate(std::size_t{8} << 20);
  ASSERT_TRUE(writer->append_aligned(pages.bytes()));
  EXPECT_TRUE(writer->finish());
}

TEST_F(FileWriterTest, AFullDiskSaysWhatIsNeededAndWhatIsFree) {
  auto writer = FileWriter::create(*tier_, "f");
  ASSERT_TRUE(writer);
  memory_.set_capacity(kPage);
  auto pages = *os::AlignedMemory::allocate(3 * kPage);
  const auto failed = writer->append_aligned(pages.bytes());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::no_space);
  for (const char* words : {"/d/f", "needs 12.0 KiB", "free", "`keep`", "`store`"})
    EXPECT_NE(failed.error().message().find(words), std::string::npos) << failed.error().message();
}

TEST_F(FileWriterTest, EveryErrorOfTheEndIsLookedAt) {
  using Kind = os::Operation::Kind;
  for (const Kind kind : {Kind::write, Kind::sync, Kind::close}) {
    auto writer = FileWriter::create(*tier_, "f" + std::to_string(static_cast<int>(kind)));
    ASSERT_TRUE(writer);
    writer->lend(buffer_.bytes());
    ASSERT_TRUE(writer->append(pattern(kPage, 1)));
    failing_ = kind;
    error_ = EIO;
    EXPECT_FALSE(writer->finish()) << static_cast<int>(kind);
    error_ = 0;
  }
}

TEST_F(FileWriterTest, ANameThatIsTakenIsBusy) {
  ASSERT_TRUE(FileWriter::create(*tier_, "f"));
  const auto second = FileWriter::create(*tier_, "f");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::busy);
}

TEST_F(FileWriterTest, ASmallFileIsPutWholeOrNotAtAll) {
  using Kind = os::Operation::Kind;
  const auto bytes = pattern(100, 1);
  for (const Kind kind : {Kind::create, Kind::write, Kind::truncate, Kind::sync, Kind::close}) {
    failing_ = kind;
    error_ = EIO;
    EXPECT_FALSE(put_whole(*tier_, "f", bytes, false)) << static_cast<int>(kind);
    EXPECT_FALSE(memory_.peek("/d/f"));
  }
  error_ = 0;
  ASSERT_TRUE(put_whole(*tier_, "f", bytes, false)) << "leftovers are in nobody's way";
  EXPECT_EQ(*memory_.peek("/d/f"), bytes);
  EXPECT_EQ(*read_whole(*tier_, "f", accept), bytes);
  EXPECT_EQ(memory_.paths().size(), 1u);
}

TEST_F(FileWriterTest, AnExclusiveFileIsNotReplaced) {
  const auto first = pattern(100, 1);
  ASSERT_TRUE(put_whole(*tier_, "f", first, true));
  const auto second = put_whole(*tier_, "f", pattern(50, 2), true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::busy);
  EXPECT_EQ(*memory_.peek("/d/f"), first);
}

TEST_F(FileWriterTest, OfALargeFileOnlyTheFrontIsReadIfThatIsRefused) {
  ASSERT_TRUE(put_whole(*tier_, "f", pattern(std::size_t{2} << 20, 1), false));
  int reads = 0;
  os::FaultyFiles counting(memory_, [&](const os::Operation& operation) {
    if (operation.kind == os::Operation::Kind::read) ++reads;
    return os::Action{};
  });
  const auto tier = make_local_tier(counting, "/d");
  const CheckFront refuse = [](std::span<const std::byte> front, std::uint64_t size) {
    EXPECT_EQ(front.size(), kPage);
    return Result<void>(fail(Code::corruption, "{} are too many", size));
  };
  const auto read = read_whole(*tier, "f", refuse);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message(), "/d/f: 2097152 are too many");
  EXPECT_EQ(reads, 1);
  EXPECT_TRUE(read_whole(*tier, "f", accept));
}

TEST_F(FileWriterTest, AFileThatShrinksWhileItIsReadIsCorruption) {
  ASSERT_TRUE(put_whole(*tier_, "f", pattern(5000, 1), false));
  os::FaultyFiles cutting(memory_, [this](const os::Operation& operation) {
    if (operation.kind == os::Operation::Kind::read) (void)memory_.cut("/d/f", 10);
    return os::Action{};
  });
  const auto tier = make_local_tier(cutting, "/d");
  const auto read = read_whole(*tier, "f", accept);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), Code::corruption);
}

}  // namespace
}  // namespace belay::store
