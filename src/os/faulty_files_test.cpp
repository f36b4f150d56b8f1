// SPDX-License-Identifier: Apache-2.0
#include "os/faulty_files.hpp"

#include <gtest/gtest.h>

#include "os/memory_files.hpp"

#include <array>
#include <cerrno>
#include <mutex>
#include <set>
#include <thread>

namespace belay::os {
namespace {

using Kind = Operation::Kind;

class FaultyFilesTest : public ::testing::Test {
 protected:
  FaultyFilesTest() { EXPECT_TRUE(disk_.make_directory("/d")); }

  MemoryFiles disk_;
  Action action_;  ///< for the operations of `kind_`
  Kind kind_ = Kind::list;
  std::vector<Operation> seen_;
  FaultyFiles files_{disk_, [this](const Operation& operation) {
                       seen_.push_back(operation);
                       return operation.kind == kind_ ? action_ : Action{};
                     }};
  std::vector<std::byte> some_ = std::vector<std::byte>(1000, std::byte{7});
};

TEST_F(FaultyFilesTest, OperationsAreNumberedAndDescribed) {
  auto file = files_.create("/d/a", false).value();
  ASSERT_TRUE(file->write(5, some_));
  ASSERT_TRUE(file->reserve(4096));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(file->close());
  ASSERT_TRUE(files_.rename("/d/a", "/d/b"));
  ASSERT_EQ(seen_.size(), 6u);
  const Kind kinds[] = {Kind::create, Kind::write, Kind::reserve,
                        Kind::sync,   Kind::close, Kind::rename};
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    EXPECT_EQ(seen_[i].kind, kinds[i]);
    EXPECT_EQ(seen_[i].number, i + 1);
    EXPECT_EQ(seen_[i].path, i < 5 ? "/d/a" : "/d/b");
  }
  EXPECT_EQ(seen_[1].bytes, 1000u);
  EXPECT_EQ(seen_[2].bytes, 4096u);
  EXPECT_EQ(files_.operations(), 6u);
}

TEST_F(FaultyFilesTest, AnErrorKeepsTheOperationFromHappening) {
  auto file = files_.create("/d/a", false).value();
  kind_ = Kind::write;
  action_ = {.error = ENOSPC};
  const auto written = file->write(0, some_);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), Code::no_space);
  EXPECT_EQ(written.error().message().find("write /d/a: No space left on device"), 0u);
  EXPECT_EQ(file->size().value(), 0u);
  kind_ = Kind::create;
  EXPECT_FALSE(files_.create("/d/b", false));
  EXPECT_EQ(disk_.paths(), std::vector<std::string>{"/d/a"});
}

TEST_F(FaultyFilesTest, ATornWriteLeavesHalf) {
  auto file = files_.create("/d/a", false).value();
  kind_ = Kind::write;
  action_ = {.error = EIO, .torn = true};
  EXPECT_FALSE(file->write(0, some_));
  EXPECT_EQ(disk_.peek("/d/a").value(), std::vector<std::byte>(500, std::byte{7}));
}

TEST_F(FaultyFilesTest, ATornDirectWriteLeavesWholePages) {
  alignas(kDirectAlignment) static std::array<std::byte, 3 * kDirectAlignment> pages{};
  auto file = files_.create("/d/a", true).value();
  kind_ = Kind::write;
  action_ = {.error = EIO, .torn = true};
  EXPECT_FALSE(file->write(0, pages));
  EXPECT_EQ(file->size().value(), kDirectAlignment);
}

TEST_F(FaultyFilesTest, AfterMeansThatItHappenedAndFailed) {
  auto file = files_.create("/d/a", false).value();
  action_ = {.error = EIO, .after = true};
  kind_ = Kind::write;
  EXPECT_FALSE(file->write(0, some_));
  EXPECT_EQ(disk_.peek("/d/a").value(), some_);
  kind_ = Kind::rename;
  EXPECT_FALSE(files_.rename("/d/a", "/d/b"));
  kind_ = Kind::create;
  EXPECT_FALSE(files_.create("/d/c", false));
  EXPECT_EQ(disk_.paths(), (std::vector<std::string>{"/d/b", "/d/c"}));
}

TEST_F(FaultyFilesTest, EveryOperationCanFail) {
  auto file = files_.create("/d/a", false).value();
  std::array<std::byte, 4> bytes{};
  const std::vector<std::pair<Kind, std::function<bool()>>> operations{
      {Kind::create, [&] { return files_.create("/d/b", false).has_value(); }},
      {Kind::open, [&] { return files_.open("/d/a", false).has_value(); }},
      {Kind::write, [&] { return file->write(0, some_).has_value(); }},
      {Kind::read, [&] { return file->read(0, bytes).has_value(); }},
      {Kind::sync, [&] { return file->sync().has_value(); }},
      {Kind::reserve, [&] { return file->reserve(10).has_value(); }},
      {Kind::truncate, [&] { return file->truncate(10).has_value(); }},
      {Kind::size, [&] { return file->size().has_value(); }},
      {Kind::touch, [&] { return files_.touch("/d/a").has_value(); }},
      {Kind::rename, [&] { return files_.rename("/d/a", "/d/b").has_value(); }},
      {Kind::rename_new, [&] { return files_.rename_new("/d/a", "/d/b").has_value(); }},
      {Kind::remove, [&] { return files_.remove("/d/a").has_value(); }},
      {Kind::sync_directory, [&] { return files_.sync_directory("/d").has_value(); }},
      {Kind::make_directory, [&] { return files_.make_directory("/e").has_value(); }},
      {Kind::list, [&] { return files_.list("/d").has_value(); }},
      {Kind::space, [&] { return files_.space("/d").has_value(); }},
      {Kind::lock, [&] { return files_.lock("/d/lock", "me").has_value(); }},
      {Kind::close, [&] { return file->close().has_value(); }},
  };
  action_ = {.error = EIO};
  for (const auto& [kind, operation] : operations) {
    kind_ = kind;
    EXPECT_FALSE(operation()) << static_cast<int>(kind);
    EXPECT_EQ(seen_.back().kind, kind);
  }
  EXPECT_EQ(disk_.paths(), std::vector<std::string>{"/d/a"});
  EXPECT_EQ(disk_.total_bytes(), 0u);
}

TEST(FaultyFiles, ReadingDoesNotChangeTheDisk) {
  for (const Kind kind : {Kind::open, Kind::read, Kind::size, Kind::close, Kind::list, Kind::space})
    EXPECT_FALSE(changes_disk(kind));
  for (const Kind kind : {Kind::create, Kind::write, Kind::sync, Kind::reserve, Kind::truncate,
                          Kind::touch, Kind::rename, Kind::rename_new, Kind::remove,
                          Kind::sync_directory, Kind::make_directory, Kind::lock})
    EXPECT_TRUE(changes_disk(kind));
}

TEST(FaultyFiles, NumbersAreUniqueAcrossThreads) {
  MemoryFiles disk;
  std::mutex mutex;
  std::set<std::uint64_t> numbers;
  FaultyFiles files(disk, [&](const Operation& operation) {
    const std::lock_guard lock(mutex);
    numbers.insert(operation.number);
    return Action{};
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int n = 0; n < 250; ++n) EXPECT_TRUE(files.list("/"));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers.size(), 1000u);
  EXPECT_EQ(*numbers.rbegin(), 1000u);
}

}  // namespace
}  // namespace belay::os
