// SPDX-License-Identifier: Apache-2.0
#include "os/memory_files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

namespace belay::os {
namespace {

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// Of the pending changes, the first is lost and all others are kept.
class LostThenKept final : public Random {
 public:
  std::uint64_t next() override { return std::exchange(value_, ~std::uint64_t{0}); }

 private:
  std::uint64_t value_ = 0;
};

std::vector<std::byte> filled(std::size_t bytes, int value) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

std::string text(std::size_t bytes, int value) {
  return std::string(bytes, static_cast<char>(value));
}

using Names = std::vector<std::string>;

/// A disk with a directory /d, and short words for what protocols do to it.
struct Scene {
  MemoryFiles disk;

  Scene() { EXPECT_TRUE(disk.make_directory("/d")); }

  std::unique_ptr<File> write(const std::string& path, const std::vector<std::byte>& bytes) {
    auto file = disk.create(path, false).value();
    EXPECT_TRUE(file->write(0, bytes));
    return file;
  }
  void write_synced(const std::string& path, const std::vector<std::byte>& bytes) {
    EXPECT_TRUE(write(path, bytes)->sync());
    EXPECT_TRUE(disk.sync_directory("/d"));
  }
  std::string read(const std::string& path) {
    const auto bytes = disk.peek(path).value();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

/// Outcomes of a power cut after `before`, over many seeds, with how often each was seen.
template <class Before, class Outcome>
auto outcomes(const Before& before, const Outcome& outcome) {
  std::map<decltype(outcome(std::declval<Scene&>())), int> seen;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Scene scene;
    before(scene);
    SeededRandom random(seed);
    scene.disk.power_cut(random);
    ++seen[outcome(scene)];
  }
  return seen;
}

Names paths_of(Scene& scene) { return scene.disk.paths(); }

TEST(MemoryFiles, WhatWasSyncedSurvivesEveryPowerCut) {
  Scene scene;
  SeededRandom random(1);
  scene.write_synced("/d/a", filled(5000, 1));
  for (int cut = 0; cut < 1000; ++cut) {
    scene.write("/d/junk" + std::to_string(cut), filled(10, 2));
    scene.disk.power_cut(random);
    ASSERT_EQ(scene.read("/d/a"), text(5000, 1));
  }
}

TEST(MemoryFiles, UnsyncedContentIsKeptLostOrDamaged) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write("/d/a", filled(100, 1));
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
      },
      [](Scene& scene) { return scene.read("/d/a"); });
  EXPECT_GT(seen.at(text(100, 1)), 100) << "kept";
  EXPECT_GT(seen.at({}), 100) << "lost";
  EXPECT_GT(seen.at(text(100, 0)), 100) << "only the size came through";
  const auto torn = std::count_if(seen.begin(), seen.end(), [](const auto& outcome) {
    const auto& bytes = outcome.first;
    return !bytes.empty() && bytes.size() < 100 && bytes == text(bytes.size(), 1);
  });
  EXPECT_GT(torn, 50) << "torn at many places";
  EXPECT_EQ(static_cast<std::size_t>(torn) + 3, seen.size()) << "and nothing else";
}

TEST(MemoryFiles, OfSeveralWritesAnySubsetMayCome) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/a", filled(3, 0));
        auto file = scene.write("/d/b", filled(3, 0));
        EXPECT_TRUE(file->sync());
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
        for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(file->write(i, filled(1, 1)));
      },
      [](Scene& scene) { return scene.read("/d/b"); });
  EXPECT_EQ(seen.size(), 8u);
}

TEST(MemoryFiles, SyncOfAnOverwriteReplacesTheOldContent) {
  const auto seen = outcomes(
      [](Scene& scene) {
        auto file = scene.write("/d/a", filled(100, 1));
        EXPECT_TRUE(file->sync());
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
        EXPECT_TRUE(file->truncate(10));
        EXPECT_TRUE(file->write(5, filled(20, 2)));
        EXPECT_TRUE(file->sync());
      },
      [](Scene& scene) { return scene.read("/d/a"); });
  const std::string expected = text(5, 1) + text(20, 2);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.begin()->first, expected);
}

TEST(MemoryFiles, UnsyncedTruncationMayBeLost) {
  const auto seen = outcomes(
      [](Scene& scene) {
        auto file = scene.write("/d/a", filled(100, 1));
        EXPECT_TRUE(file->sync());
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
        EXPECT_TRUE(file->truncate(40));
      },
      [](Scene& scene) { return scene.read("/d/a").size(); });
  EXPECT_GT(seen.at(40), 100);
  EXPECT_GT(seen.at(100), 100);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(MemoryFiles, ANameIsDurableOnlyAfterSyncOfItsDirectory) {
  const auto unsynced = outcomes(
      [](Scene& scene) { EXPECT_TRUE(scene.write("/d/a", filled(9, 1))->sync()); }, paths_of);
  EXPECT_GT(unsynced.at({}), 100);
  EXPECT_GT(unsynced.at({"/d/a"}), 100);
  const auto synced =
      outcomes([](Scene& scene) { scene.write_synced("/d/a", filled(9, 1)); }, paths_of);
  EXPECT_EQ(synced.size(), 1u);
}

TEST(MemoryFiles, WhatMustBeLeftIsWhatWasSynced) {
  Scene scene;
  scene.write_synced("/d/a", filled(9, 1));
  scene.write_synced("/d/gone", filled(9, 2));
  scene.write("/d/a2", filled(9, 3));
  EXPECT_TRUE(scene.disk.remove("/d/gone"));
  const auto left = scene.disk.durable();
  EXPECT_EQ(left->paths(), (Names{"/d/a", "/d/gone"}));
  EXPECT_EQ(left->peek("/d/a")->size(), 9u);
  EXPECT_TRUE(left->remove("/d/a"));
  EXPECT_EQ(scene.disk.paths(), (Names{"/d/a", "/d/a2"})) << "it is another disk";
}

TEST(MemoryFiles, ALostRenameLeavesTheOldNameAndTheReplacedFile) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/new", filled(9, 2));
        scene.write_synced("/d/old", filled(9, 1));
        EXPECT_TRUE(scene.disk.rename("/d/new", "/d/old"));
      },
      [](Scene& scene) { return std::pair(scene.disk.paths(), scene.read("/d/old")); });
  EXPECT_GT(seen.at({{"/d/new", "/d/old"}, text(9, 1)}), 100);
  EXPECT_GT(seen.at({{"/d/old"}, text(9, 2)}), 100);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(MemoryFiles, ARenameIsLostWithTheCreationThatItNeeds) {
  const auto seen = outcomes(
      [](Scene& scene) {
        EXPECT_TRUE(scene.write("/d/a.tmp", filled(9, 1))->sync());
        EXPECT_TRUE(scene.disk.rename_new("/d/a.tmp", "/d/a"));
      },
      paths_of);
  EXPECT_GT(seen.at({}), 100);
  EXPECT_GT(seen.at({"/d/a.tmp"}), 100);
  EXPECT_GT(seen.at({"/d/a"}), 100);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(MemoryFiles, ALostRemovalBringsTheFileBack) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/a", filled(9, 1));
        EXPECT_TRUE(scene.disk.remove("/d/a"));
        EXPECT_TRUE(scene.write("/d/a", filled(9, 2))->sync());
      },
      [](Scene& scene) { return scene.disk.paths().empty() ? std::string() : scene.read("/d/a"); });
  EXPECT_GT(seen.at(text(9, 1)), 100);
  EXPECT_GT(seen.at(text(9, 2)), 100);
  EXPECT_GT(seen.at({}), 100);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(MemoryFiles, AKeptRenameDoesNothingToAFileWhoseRemovalWasLost) {
  Scene scene;
  LostThenKept random;
  scene.write_synced("/d/a", filled(9, 1));
  EXPECT_TRUE(scene.disk.remove("/d/a"));
  EXPECT_TRUE(scene.write("/d/a", filled(9, 2))->sync());
  EXPECT_TRUE(scene.disk.rename("/d/a", "/d/b"));
  scene.disk.power_cut(random);
  EXPECT_EQ(scene.disk.paths(), Names{"/d/a"});
  EXPECT_EQ(scene.read("/d/a"), text(9, 1));
}

TEST(MemoryFiles, AKeptRenameNewNeverReplacesAFileWhoseRemovalWasLost) {
  Scene scene;
  LostThenKept random;
  scene.write_synced("/d/a", filled(9, 1));
  scene.write_synced("/d/b", filled(9, 2));
  EXPECT_TRUE(scene.disk.remove("/d/a"));
  EXPECT_TRUE(scene.disk.rename_new("/d/b", "/d/a"));
  scene.disk.power_cut(random);
  EXPECT_EQ(scene.disk.paths(), (Names{"/d/a", "/d/b"}));
  EXPECT_EQ(scene.read("/d/a"), text(9, 1));
}

TEST(MemoryFiles, TheWholePublishProtocolIsAtomic) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/a", filled(9, 1));
        EXPECT_TRUE(scene.write("/d/a.tmp", filled(9, 2))->sync());
        EXPECT_TRUE(scene.disk.rename("/d/a.tmp", "/d/a"));
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
      },
      [](Scene& scene) { return std::pair(scene.disk.paths(), scene.read("/d/a")); });
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.begin()->first, std::pair(Names{"/d/a"}, text(9, 2)));
}

TEST(MemoryFiles, SyncOfOneDirectoryLeavesOthersPending) {
  const auto seen = outcomes(
      [](Scene& scene) {
        EXPECT_TRUE(scene.disk.make_directory("/e"));
        EXPECT_TRUE(scene.write("/d/a", filled(9, 1))->sync());
        EXPECT_TRUE(scene.disk.sync_directory("/e"));
      },
      paths_of);
  EXPECT_EQ(seen.size(), 2u);
}

TEST(MemoryFiles, ARenameBetweenDirectoriesIsDurableWithEither) {
  for (const char* synced : {"/d", "/e"}) {
    const auto seen = outcomes(
        [&](Scene& scene) {
          EXPECT_TRUE(scene.disk.make_directory("/e"));
          EXPECT_TRUE(scene.write("/d/a", filled(9, 1))->sync());
          EXPECT_TRUE(scene.disk.rename("/d/a", "/e/b"));
          EXPECT_TRUE(scene.disk.sync_directory(synced));
        },
        paths_of);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen.begin()->first, Names{"/e/b"});
  }
}

TEST(MemoryFiles, DirectoriesAreDurableWithWhatTheirParentsHold) {
  const auto seen = outcomes(
      [](Scene& scene) {
        EXPECT_TRUE(scene.write("/d/a", filled(9, 1))->sync());
        EXPECT_TRUE(scene.disk.make_directory("/d/x/y"));
      },
      [](Scene& scene) {
        return scene.disk.paths().size() + scene.disk.list("/d/x").value().size();
      });
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.begin()->first, 2u);
}

TEST(MemoryFiles, TheSameSeedGivesTheSameDisk) {
  const auto history = [](std::uint64_t seed) {
    Scene scene;
    SeededRandom random(seed);
    std::vector<std::pair<std::string, std::string>> result;
    for (int i = 0; i < 20; ++i) {
      const std::string name = "/d/" + std::to_string(i);
      scene.write(name, filled(50, i));
      if (i % 3 == 0) {
        EXPECT_TRUE(scene.disk.sync_directory("/d"));
      }
      if (i % 5 == 0) scene.disk.power_cut(random);
    }
    for (const std::string& path : scene.disk.paths()) result.emplace_back(path, scene.read(path));
    return result;
  };
  std::set<decltype(history(0))> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(history(seed), history(seed));
    different.insert(history(seed));
  }
  EXPECT_GT(different.size(), 40u);
}

TEST(MemoryFiles, HandlesDieAndLocksAreFreeAfterAPowerCut) {
  Scene scene;
  SeededRandom random(1);
  auto writer = scene.write("/d/a", filled(10, 1));
  EXPECT_TRUE(writer->sync());
  auto lock = scene.disk.lock("/d/lock", "before");
  ASSERT_TRUE(lock);
  EXPECT_TRUE(scene.disk.sync_directory("/d"));
  scene.disk.power_cut(random);
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(writer->write(0, bytes).error().code(), Code::io);
  EXPECT_EQ(writer->read(0, bytes).error().code(), Code::io);
  EXPECT_EQ(writer->sync().error().code(), Code::io);
  EXPECT_EQ(writer->reserve(1).error().code(), Code::io);
  EXPECT_EQ(writer->truncate(0).error().code(), Code::io);
  EXPECT_EQ(writer->size().error().code(), Code::io);
  EXPECT_EQ(writer->close().error().code(), Code::io);
  const auto again = scene.disk.lock("/d/lock", "after");
  ASSERT_TRUE(again);
  lock->reset();
  EXPECT_FALSE(scene.disk.lock("/d/lock", "third")) << "the old lock must not release the new one";
  EXPECT_EQ(scene.read("/d/a"), text(10, 1));
}

TEST(MemoryFiles, CapacityLimitsWritesAndReservations) {
  Scene scene;
  scene.disk.set_capacity(1000);
  auto file = scene.write("/d/a", filled(600, 1));
  EXPECT_EQ(file->reserve(1001).error().code(), Code::no_space);
  ASSERT_TRUE(file->reserve(900));
  EXPECT_EQ(scene.disk.space("/d").value().free_bytes, 100u);
  auto other = scene.disk.create("/d/b", false).value();
  EXPECT_EQ(other->write(0, filled(101, 2)).error().code(), Code::no_space);
  EXPECT_EQ(scene.read("/d/b"), text(100, 2)) << "what fits is written, as by the kernel";
  ASSERT_TRUE(file->write(600, filled(300, 1))) << "what was reserved can be written";
  EXPECT_EQ(file->write(900, filled(1, 1)).error().code(), Code::no_space);
  ASSERT_TRUE(file->write(0, filled(900, 3))) << "so can what is there";
  EXPECT_TRUE(scene.disk.lock("/d/lock", "me")) << "pruning a full disk needs it";
  EXPECT_EQ(scene.disk.total_bytes(), 1000u);
}

TEST(MemoryFiles, SpaceIsFreeWhenTheLastHandleOfARemovedFileCloses) {
  Scene scene;
  scene.disk.set_capacity(1000);
  auto file = scene.write("/d/a", filled(1000, 1));
  ASSERT_TRUE(scene.disk.remove("/d/a"));
  EXPECT_EQ(scene.disk.space("/d").value().free_bytes, 0u);
  ASSERT_TRUE(file->close());
  EXPECT_EQ(scene.disk.space("/d").value().free_bytes, 1000u);
  scene.write("/d/b", filled(400, 1));
  scene.write("/d/c", filled(500, 1));
  ASSERT_TRUE(scene.disk.rename("/d/b", "/d/c"));
  EXPECT_EQ(scene.disk.space("/d").value().free_bytes, 600u);
  ASSERT_TRUE(scene.disk.erase("/d/c"));
  EXPECT_EQ(scene.disk.space("/d").value().free_bytes, 1000u);
}

TEST(MemoryFiles, DirectWritesMustBeAligned) {
  Scene scene;
  alignas(kDirectAlignment) static std::byte page[2 * kDirectAlignment];
  auto file = scene.disk.create("/d/a", true).value();
  EXPECT_TRUE(file->write(kDirectAlignment, std::span(page)));
  EXPECT_EQ(file->write(1, std::span(page)).error().code(), Code::invalid_argument);
  EXPECT_EQ(file->write(0, std::span(page).first(100)).error().code(), Code::invalid_argument);
  EXPECT_EQ(file->write(0, std::span(page).subspan(512, kDirectAlignment)).error().code(),
            Code::invalid_argument);
}

TEST(MemoryFiles, DamageIsDurable) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/flipped", filled(9, 0));
        scene.write_synced("/d/cut", filled(9, 1));
        scene.write_synced("/d/erased", filled(9, 1));
        EXPECT_TRUE(scene.disk.flip("/d/flipped", 8 * 3 + 2));
        EXPECT_TRUE(scene.disk.cut("/d/cut", 4));
        EXPECT_TRUE(scene.disk.erase("/d/erased"));
      },
      [](Scene& scene) {
        return std::tuple(scene.disk.paths(), scene.read("/d/flipped"), scene.read("/d/cut"));
      });
  std::string flipped = text(9, 0);
  flipped[3] = 4;
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.begin()->first, std::tuple(Names{"/d/cut", "/d/flipped"}, flipped, text(4, 1)));
}

TEST(MemoryFiles, AFlippedBitStaysFlippedWhenTheWriteIsSyncedLater) {
  Scene scene;
  SeededRandom random(1);
  auto file = scene.write("/d/a", filled(9, 0));
  ASSERT_TRUE(scene.disk.flip("/d/a", 0));
  ASSERT_TRUE(file->sync());
  ASSERT_TRUE(scene.disk.sync_directory("/d"));
  scene.disk.power_cut(random);
  EXPECT_EQ(scene.read("/d/a").front(), 1);
}

TEST(MemoryFiles, AnErasedFileNeverComesBack) {
  const auto seen = outcomes(
      [](Scene& scene) {
        scene.write_synced("/d/a", filled(9, 1));
        scene.write_synced("/d/b", filled(9, 1));
        EXPECT_TRUE(scene.disk.rename("/d/a", "/d/b"));
        scene.write("/d/c", filled(9, 1));
        EXPECT_TRUE(scene.disk.erase("/d/b"));
        EXPECT_TRUE(scene.disk.erase("/d/c"));
      },
      paths_of);
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen.begin()->first.empty());
}

TEST(MemoryFiles, ALostNodeIsAnErasedDirectory) {
  Scene scene;
  SeededRandom random(1);
  ASSERT_TRUE(scene.disk.make_directory("/d/node/inner"));
  scene.write("/d/node/a", filled(9, 1));
  scene.write("/d/node/inner/b", filled(9, 1));
  scene.write_synced("/d/c", filled(9, 1));
  ASSERT_TRUE(scene.disk.erase("/d/node"));
  EXPECT_EQ(scene.disk.paths(), Names{"/d/c"});
  EXPECT_EQ(scene.disk.total_bytes(), 9u);
  scene.disk.power_cut(random);
  EXPECT_EQ(scene.disk.list("/d").value().size(), 1u);
}

TEST(MemoryFiles, DamageToWhatIsNotThereIsAnError) {
  Scene scene;
  scene.write("/d/a", filled(9, 1));
  EXPECT_EQ(scene.disk.flip("/d/a", 72).error().code(), Code::invalid_argument);
  EXPECT_EQ(scene.disk.cut("/d/a", 10).error().code(), Code::invalid_argument);
  EXPECT_EQ(scene.disk.erase("/d/b").error().code(), Code::not_found);
  EXPECT_EQ(scene.disk.peek("/d/b").error().code(), Code::not_found);
}

}  // namespace
}  // namespace belay::os
