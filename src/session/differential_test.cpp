// SPDX-License-Identifier: Apache-2.0
// Only what changed is written, and it comes back whatever the sizes, the blocks and the hash.
#include "format/segment.hpp"
#include "os/faulty_files.hpp"
#include "session/session_test.hpp"

#include <map>

namespace belay::session {
namespace {

class Differential : public SessionTest {
 protected:
  /// Saves `numbers` under `before`, restores it under `after`, and takes another version.
  Ledger reopened_with(const Options& before, const Options& after) {
    const auto numbers = noise(20 * kPerBlock + 3, 5);
    {
      auto session = open(before);
      auto saved = numbers;
      must(session.protect("numbers", saved));
      take(session);
      must(session.close());
    }
    auto session = open(after);
    std::vector<std::uint64_t> found;
    must(session.protect("numbers", found));
    must(session.restore());
    EXPECT_EQ(found, numbers);
    const Ledger ledger = take_ledger(session);
    found.clear();
    must(session.restore());
    EXPECT_EQ(found, numbers) << "of the version taken after the restart";
    return ledger;
  }
};

TEST_F(Differential, BlocksMayEndWhereAPageOfTheFileEnds) {
  // More than what is written early, and with the segment's header a number of whole pages.
  constexpr std::size_t kBytes = (std::size_t{2} << 20) - format::kSegmentHeaderBytes;
  for (const char* background : {"inline", "thread"}) {
    Options options;
    options.background = background;
    options.store = std::string("/store-") + background;
    auto session = open(options);
    auto numbers = noise(kBytes / sizeof(std::uint64_t), 3);
    const auto saved = numbers;
    must(session.protect("numbers", numbers));
    take(session);
    numbers.clear();
    must(session.restore());
    EXPECT_EQ(numbers, saved);
    must(session.close());
  }
}

TEST_F(Differential, OnlyChangedBlocksAreWritten) {
  auto session = open();
  auto numbers = noise(20 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock);
  ++numbers[3 * kPerBlock];
  ++numbers[7 * kPerBlock + 5];
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, 2 * kBlock);
  EXPECT_EQ(ledger.unchanged_bytes, 18 * kBlock);
  EXPECT_EQ(ledger.carried_bytes, 0u);
}

TEST_F(Differential, WithoutAChangeNothingIsWrittenAndNoSegmentMade) {
  auto session = open();
  auto numbers = noise(20 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  take(session);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
  EXPECT_EQ(files_named("segment-").size(), 1u);
}

TEST_F(Differential, AWriteOfTheSameContentIsNoChange) {
  auto session = open();
  auto numbers = noise(20 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  take(session);
  numbers = noise(20 * kPerBlock, 1);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
}

TEST_F(Differential, TheFirstVersionAfterARestartIsDifferential) {
  const Ledger ledger = reopened_with(options(), options());
  EXPECT_EQ(ledger.written_bytes, 0u);
  EXPECT_EQ(ledger.unchanged_bytes, ledger.protected_bytes);
}

TEST_F(Differential, WithoutARestoreTheFirstVersionIsFull) {
  auto numbers = noise(20 * kPerBlock, 1);
  {
    auto session = open();
    must(session.protect("numbers", numbers));
    take(session);
    must(session.close());
  }
  auto session = open();
  must(session.protect("numbers", numbers));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock);
}

TEST_F(Differential, AnotherBlockSizeMakesTheNextVersionFull) {
  Options after = options();
  after.block = 4096;
  const Ledger ledger = reopened_with(options(), after);
  EXPECT_EQ(ledger.unchanged_bytes, 0u);
  EXPECT_EQ(ledger.written_bytes + ledger.duplicate_here_bytes, ledger.protected_bytes);
  EXPECT_GE(ledger.written_bytes, 20 * kBlock);
}

TEST_F(Differential, AnotherHashMakesTheNextVersionFull) {
  Options after = options();
  after.hash = "sha256";
  const Ledger ledger = reopened_with(options(), after);
  EXPECT_EQ(ledger.written_bytes, ledger.protected_bytes);
}

TEST_F(Differential, ARegionThatMovesToAnotherNameIsADuplicate) {
  auto session = open();
  auto numbers = noise(20 * kPerBlock, 1);
  must(session.protect("old name", numbers));
  take(session);
  must(session.unprotect("old name"));
  must(session.protect("new name", numbers));
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, 0u);
  EXPECT_EQ(ledger.duplicate_here_bytes, 20 * kBlock);
}

TEST_F(Differential, GrowthWritesOnlyTheNewEnd) {
  auto session = open();
  const auto whole = noise(30 * kPerBlock, 1);
  std::vector<std::uint64_t> numbers(whole.begin(), whole.begin() + 20 * kPerBlock);
  must(session.protect("numbers", numbers));
  take(session);
  numbers = whole;
  EXPECT_EQ(take_ledger(session).written_bytes, 10 * kBlock);
  numbers.resize(5 * kPerBlock);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
}

TEST_F(Differential, ARegionOfZerosCostsOneBlock) {
  auto session = open();
  std::vector<std::uint64_t> zeros(1000 * kPerBlock);
  must(session.protect("zeros", zeros));
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, kBlock);
  EXPECT_EQ(ledger.duplicate_here_bytes, 999 * kBlock);
  zeros.assign(zeros.size(), 1);
  must(session.restore());
  EXPECT_EQ(zeros, std::vector<std::uint64_t>(1000 * kPerBlock));
}

TEST_F(Differential, EqualBlocksOfDifferentRegionsAreStoredOnce) {
  auto session = open();
  auto a = noise(20 * kPerBlock, 1);
  auto b = a;
  b.resize(20 * kPerBlock + 1, 42);  // and one short block
  must(session.protect("a", a));
  must(session.protect("b", b));
  EXPECT_EQ(take_ledger(session).written_bytes, 20 * kBlock + sizeof(std::uint64_t));
  const auto saved = b;
  b.clear();
  must(session.restore());
  EXPECT_EQ(b, saved);
}

TEST_F(Differential, TwoArraysThatSwapTheirContentCostNothing) {
  auto session = open();
  auto older = noise(20 * kPerBlock, 1);
  auto newer = noise(20 * kPerBlock, 2);
  must(session.protect("newer", newer));
  must(session.protect("older", older));
  take(session);
  std::swap(older, newer);
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, 0u);
  EXPECT_EQ(ledger.duplicate_here_bytes, 40 * kBlock);
  std::vector<std::uint64_t> found_older, found_newer;
  must(session.protect("newer", found_newer));
  must(session.protect("older", found_older));
  must(session.restore());
  EXPECT_EQ(found_older, older);
  EXPECT_EQ(found_newer, newer);
}

TEST_F(Differential, AfterAFailedVersionTheNextOneIsDifferentialStill) {
  bool full = false;
  os::FaultyFiles faulty(memory_, [&](const os::Operation& operation) {
    const bool hit = full && operation.kind == os::Operation::Kind::write;
    return os::Action{.error = hit ? ENOSPC : 0};
  });
  files_ = &faulty;
  auto session = open();
  auto numbers = noise(20 * kPerBlock, 1);
  must(session.protect("numbers", numbers));
  take(session);
  full = true;
  const auto saved = numbers;
  numbers = noise(20 * kPerBlock, 2);
  EXPECT_FALSE(session.checkpoint());
  EXPECT_FALSE(session.wait());
  full = false;
  numbers = saved;
  ++numbers[3 * kPerBlock];
  EXPECT_EQ(take_ledger(session).written_bytes, kBlock);
}

TEST_F(Differential, RegionsComeBackHoweverTheyGrowShrinkComeAndGo) {
  auto session = open();
  std::mt19937_64 random(7);
  const auto one_in = [&random](std::uint64_t n) { return random() % n == 0; };
  std::map<std::string, std::vector<std::uint64_t>> regions;
  for (int version = 0; version < 150; ++version) {
    for (const char* name : {"a", "b", "c", "d"}) {
      if (regions.count(name) == 0 && one_in(3)) {
        must(session.protect(name, regions[name]));
      } else if (regions.count(name) == 1 && one_in(12)) {
        must(session.unprotect(name));
        regions.erase(name);
      }
    }
    for (auto& [name, region] : regions) {
      if (one_in(3)) region.resize(random() % (6 * kPerBlock));
      // Few contents, so that blocks move between places and versions.
      for (auto& number : region)
        if (one_in(4 * kPerBlock)) number = random() % 4;
    }
    if (regions.size() > 1 && one_in(4))
      std::swap(regions.begin()->second, regions.rbegin()->second);
    must(session.begin());
    if (regions.count("c") == 1 && one_in(2)) must(session.add("c"));
    must(session.commit());
    must(session.wait());
    const auto saved = regions;
    for (auto& [name, region] : regions) region.assign(region.size() + 1, 99);
    if (!regions.empty()) must(session.restore());
    ASSERT_EQ(regions, saved) << "in version " << version;
  }
}

TEST_F(Differential, WithoutDedupEveryBlockIsStored) {
  Options none = options();
  none.dedup = "none";
  auto session = open(none);
  std::vector<std::uint64_t> zeros(100 * kPerBlock);
  must(session.protect("zeros", zeros));
  EXPECT_EQ(take_ledger(session).written_bytes, 100 * kBlock);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u) << "it is still differential";
  zeros.assign(zeros.size(), 1);
  must(session.restore());
  EXPECT_EQ(zeros, std::vector<std::uint64_t>(100 * kPerBlock));
}

TEST_F(Differential, AVersionWhoseBlocksCameBackRefersToTheOldOnes) {
  auto session = open();
  const auto first = noise(20 * kPerBlock, 1);
  auto numbers = first;
  must(session.protect("numbers", numbers));
  take(session);
  std::swap_ranges(numbers.begin(), numbers.begin() + kPerBlock, numbers.begin() + kPerBlock);
  const Ledger ledger = take_ledger(session);
  EXPECT_EQ(ledger.written_bytes, 0u);
  EXPECT_EQ(ledger.duplicate_here_bytes, 2 * kBlock);
}

struct Cut {
  std::size_t block;
  const char* hash;
};

class EverySize : public Differential, public testing::WithParamInterface<Cut> {};

TEST_P(EverySize, ComesBackWithItsNeighboursUntouched) {
  Options cut = options();
  cut.block = GetParam().block;
  cut.hash = GetParam().hash;
  std::vector<std::vector<char>> saved;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, GetParam().block - 1, GetParam().block,
        GetParam().block + 1, 3 * GetParam().block + 17}) {
    saved.emplace_back(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      saved.back()[i] = static_cast<char>((i * 31 + bytes) >> (i % 5));
  }
  {
    auto session = open(cut);
    for (std::size_t i = 0; i < saved.size(); ++i)
      must(session.protect("r" + std::to_string(i), saved[i]));
    take(session);
    saved.back()[GetParam().block] ^= 1;
    take(session);
    must(session.close());
  }
  auto session = open(cut);
  std::vector<std::vector<char>> found(saved.size());
  for (std::size_t i = 0; i < saved.size(); ++i)
    must(session.protect("r" + std::to_string(i), found[i]));
  must(session.restore());
  EXPECT_TRUE(found == saved);
}

INSTANTIATE_TEST_SUITE_P(All, EverySize,
                         testing::Values(Cut{512, "xxh3"}, Cut{512, "md5"}, Cut{1024, "sha1"},
                                         Cut{1536, "sha256"}, Cut{16384, "xxh3"},
                                         Cut{1u << 20, "xxh3"}, Cut{4u << 20, "xxh3"}),
                         [](const auto& tested) {
                           return std::string(tested.param.hash) + "_" +
                                  std::to_string(tested.param.block);
                         });

}  // namespace
}  // namespace belay::session
