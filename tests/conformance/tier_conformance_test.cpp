// SPDX-License-Identifier: Apache-2.0
// What every Tier must do: local ones over the kernel's files and over memory, and an overlay.
#include "os/memory.hpp"
#include "os/memory_files.hpp"
#include "store/bundled_tier.hpp"
#include "store/overlay_tier.hpp"
#include "store/tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace belay::store {
namespace {

/// A tier, and whatever it stands on.
struct Place {
  std::unique_ptr<os::MemoryFiles> memory = {};
  std::filesystem::path directory = {};
  std::unique_ptr<Tier> tier = {};

  Place() = default;
  Place(Place&&) = default;
  ~Place() {
    std::error_code ignored;
    if (!directory.empty()) std::filesystem::remove_all(directory, ignored);
  }
};

Place posix_place() {
  Place place;
  std::string pattern = testing::TempDir() + "belay-tier-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) std::abort();
  place.directory = pattern;
  place.tier = make_local_tier(os::posix_files(), pattern);
  return place;
}

Place memory_place() {
  Place place;
  place.memory = std::make_unique<os::MemoryFiles>();
  EXPECT_TRUE(place.memory->make_directory("/d"));
  place.tier = make_local_tier(*place.memory, "/d");
  return place;
}

Place overlay_place() {
  Place place;
  place.memory = std::make_unique<os::MemoryFiles>();
  std::vector<std::unique_ptr<Tier>> places;
  for (const char* directory : {"/new", "/old"}) {
    EXPECT_TRUE(place.memory->make_directory(directory));
    places.push_back(make_local_tier(*place.memory, directory));
  }
  place.tier = make_overlay_tier(std::move(places));
  return place;
}

Place bundled_place() {
  Place place = memory_place();
  place.tier = make_bundled_tier(std::move(place.tier));
  return place;
}

struct Kind {
  const char* name;
  Place (*make)();
};

class TierConformance : public testing::TestWithParam<Kind> {
 protected:
  /// Whole pages of one letter.
  static os::AlignedMemory pages(std::size_t count, char letter) {
    auto memory = *os::AlignedMemory::allocate(count * os::kDirectAlignment);
    std::fill(memory.bytes().begin(), memory.bytes().end(), static_cast<std::byte>(letter));
    return memory;
  }
  void put(const std::string& name, std::size_t count, char letter) {
    const auto file = tier().create(name);
    ASSERT_TRUE(file) << file.error().message();
    ASSERT_TRUE((*file)->write(0, pages(count, letter).bytes()));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE((*file)->close());
    ASSERT_TRUE(tier().sync_names());
  }
  Tier& tier() { return *place_.tier; }

  Place place_ = GetParam().make();
};

TEST_P(TierConformance, IsEmptyAtFirst) {
  const auto names = tier().list();
  ASSERT_TRUE(names);
  EXPECT_TRUE(names->empty());
  EXPECT_FALSE(tier().place().empty());
}

TEST_P(TierConformance, WhatIsPutComesBack) {
  put("f", 3, 'x');
  const auto file = tier().open("f");
  ASSERT_TRUE(file);
  EXPECT_EQ(*(*file)->size(), 3 * os::kDirectAlignment);
  auto memory = pages(4, 0);
  EXPECT_EQ(*(*file)->read(0, memory.bytes()), 3 * os::kDirectAlignment);
  EXPECT_EQ(memory.bytes()[3 * os::kDirectAlignment - 1], std::byte{'x'});
}

TEST_P(TierConformance, ANameThatIsTakenIsBusy) {
  put("f", 1, 'x');
  const auto again = tier().create("f");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::busy);
}

TEST_P(TierConformance, WhatIsNotThereIsNotFoundAndNamed) {
  const auto expect_not_found = [](const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found) << error.message();
    EXPECT_NE(error.message().find("nobody"), std::string::npos) << error.message();
  };
  expect_not_found(tier().open("nobody").error());
  expect_not_found(tier().touch("nobody").error());
  expect_not_found(tier().remove("nobody").error());
  expect_not_found(tier().publish("nobody", "f", false).error());
}

TEST_P(TierConformance, NamesAreListedSortedAndOnce) {
  for (const char* name : {"c", "a", "b"}) put(name, 1, 'x');
  EXPECT_EQ(*tier().list(), (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(TierConformance, PublishingReplacesUnlessItIsExclusive) {
  put("f", 1, 'o');
  put("f.tmp", 2, 'n');
  const auto refused = tier().publish("f.tmp", "f", /*exclusive=*/true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::busy);
  EXPECT_EQ(*tier().touch("f"), os::kDirectAlignment);
  ASSERT_TRUE(tier().publish("f.tmp", "f", /*exclusive=*/false));
  EXPECT_EQ(*tier().touch("f"), 2 * os::kDirectAlignment);
  EXPECT_EQ(*tier().list(), std::vector<std::string>{"f"});
}

TEST_P(TierConformance, AnExclusiveNameIsGivenOnce) {
  put("a.tmp", 1, 'a');
  put("b.tmp", 1, 'b');
  EXPECT_TRUE(tier().publish("a.tmp", "f", true));
  EXPECT_FALSE(tier().publish("b.tmp", "f", true));
}

TEST_P(TierConformance, TouchingTellsTheSize) {
  put("f", 5, 'x');
  EXPECT_EQ(*tier().touch("f"), 5 * os::kDirectAlignment);
}

TEST_P(TierConformance, RemovedIsGoneAndTheNameIsFree) {
  put("f", 1, 'x');
  ASSERT_TRUE(tier().remove("f"));
  EXPECT_TRUE(tier().list()->empty());
  put("f", 2, 'y');
  EXPECT_EQ(*tier().touch("f"), 2 * os::kDirectAlignment);
}

TEST_P(TierConformance, AFileThatIsRemovedWhileItIsReadStaysReadable) {
  put("f", 1, 'x');
  const auto file = tier().open("f");
  ASSERT_TRUE(file);
  ASSERT_TRUE(tier().remove("f"));
  auto memory = pages(1, 0);
  EXPECT_EQ(*(*file)->read(0, memory.bytes()), os::kDirectAlignment);
  EXPECT_EQ(memory.bytes()[0], std::byte{'x'});
}

TEST_P(TierConformance, RetiredFilesAreGoneOnceTheyAreDropped) {
  put("segment-1", 1, 'x');
  put("segment-2", 1, 'x');
  ASSERT_TRUE(tier().retire("segment-1"));
  ASSERT_TRUE(tier().create_large("segment-3"));
  ASSERT_TRUE(tier().retire("segment-2"));
  ASSERT_TRUE(tier().drop_retired());
  EXPECT_EQ(*tier().list(), std::vector<std::string>{"segment-3"});
  EXPECT_EQ(tier().retire("segment-2").error().code(), Code::not_found);
  EXPECT_EQ(*tier().drop_retired(), 0u);
}

TEST_P(TierConformance, SmallFilesArePutAndReadWhole) {
  for (const std::size_t bytes : {1u, 4095u, 4096u, 4097u, 100'000u}) {
    std::vector<std::byte> content(bytes);
    for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 7);
    ASSERT_TRUE(put_whole(tier(), "f", content, false)) << bytes;
    const auto read = read_whole(tier(), "f", [](auto, auto) { return Result<void>{}; });
    ASSERT_TRUE(read) << bytes;
    EXPECT_EQ(*read, content) << bytes;
  }
  EXPECT_EQ(*tier().list(), std::vector<std::string>{"f"});
}

TEST_P(TierConformance, HasSpace) {
  const auto space = tier().space();
  ASSERT_TRUE(space);
  EXPECT_GT(space->total_bytes, 0u);
  EXPECT_LE(space->free_bytes, space->total_bytes);
}

TEST_P(TierConformance, MayBeUsedByManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (int i = 0; i < 20; ++i) {
        const std::string name = std::to_string(t) + "-" + std::to_string(i);
        put(name, 1, 'x');
        EXPECT_TRUE(tier().touch(name));
        EXPECT_TRUE(tier().list());
        if (i % 2 == 0) {
          EXPECT_TRUE(tier().remove(name));
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(tier().list()->size(), 40u);
}

INSTANTIATE_TEST_SUITE_P(All, TierConformance,
                         testing::Values(Kind{"posix", posix_place}, Kind{"memory", memory_place},
                                         Kind{"overlay", overlay_place},
                                         Kind{"bundled", bundled_place}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace belay::store
